import Logging
import NIOCore
import NIOHTTPTypes

/// A handler that answers the requests of one connection one at a time, and no faster than its caller reads.
///
/// A caller may send hundreds of requests in one packet. Without this handler, all would be passed on and answered, and
/// their responses kept for a caller who may never read them. A few such connections would use up memory and time for
/// all others. A caller who does not read for a while is disconnected: its response is under way, so it never counts as
/// silent.
final class PipeliningLimit: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// A part, event or error that came from the caller.
    private enum Arrival {
        case part(HTTPRequestPart)
        case event(Any)
        case failure(any Error)
    }

    private let limits: ServerLimits
    private let logger: Logger
    /// Everything that arrived behind the request being answered, in order.
    private var waiting = CircularBuffer<Arrival>()
    private var isAnswering = false
    /// Whether the server is stopping. It then finishes the requests it began and begins no others.
    private var isStopping = false
    /// Whether waiting parts are being passed on. A response may be written before that ends.
    private var isPassingOn = false
    /// Whether a read was requested while something waited.
    private var isMoreWanted = false
    /// The task that ends the connection unless its caller reads first.
    private var ending: Scheduled<Void>?

    /// Creates the handler of a connection.
    init(limits: ServerLimits, logger: Logger) {
        self.limits = limits
        self.logger = logger
    }

    func handlerAdded(context: ChannelHandlerContext) {
        // Where the option cannot be set, the connection works without it.
        _ = context.channel.setOption(.socketOption(.so_sndbuf), value: SocketOptionValue(limits.sendBufferBytes))
    }

    func handlerRemoved(context: ChannelHandlerContext) { ending?.cancel() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        arrive(.part(unwrapInboundIn(data)), context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { arrive(.failure(error), context) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent {
            isStopping = true
            waiting.removeAll()
        }
        arrive(.event(event), context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        ending?.cancel()
        context.fireChannelInactive()
    }

    func read(context: ChannelHandlerContext) {
        isMoreWanted = !waiting.isEmpty
        if !isMoreWanted { context.read() }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let part = unwrapOutboundIn(data)
        context.write(data, promise: promise)
        guard case .end = part else { return }
        isAnswering = false
        passOn(context)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        ending?.cancel()
        ending = context.channel.isWritable ? nil : self.end(context, afterSeconds: limits.unreadSecondsMax)
        context.fireChannelWritabilityChanged()
    }

    private func end(_ context: ChannelHandlerContext, afterSeconds seconds: Int64) -> Scheduled<Void> {
        context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(seconds)) {
            self.logger.info("a connection was ended: its caller did not read")
            context.close(promise: nil)
        }
    }

    private func arrive(_ arrival: Arrival, _ context: ChannelHandlerContext) {
        guard waiting.isEmpty, isItsTurn(arrival) else { return waiting.append(arrival) }
        pass(arrival, context)
    }

    /// Passes on the next waiting request, up to the head of the one after it.
    private func passOn(_ context: ChannelHandlerContext) {
        guard !waiting.isEmpty, !isPassingOn else { return }
        isPassingOn = true
        defer { isPassingOn = false }
        while let arrival = waiting.first, isItsTurn(arrival) {
            waiting.removeFirst()
            pass(arrival, context)
        }
        context.fireChannelReadComplete()
        if isMoreWanted { read(context: context) }
    }

    private func isItsTurn(_ arrival: Arrival) -> Bool {
        switch arrival {
        case .part(.head): !isAnswering && !isStopping
        case .part(.body), .part(.end), .event, .failure: true
        }
    }

    private func pass(_ arrival: Arrival, _ context: ChannelHandlerContext) {
        switch arrival {
        case .part(let part):
            if case .head = part { isAnswering = true }
            context.fireChannelRead(wrapInboundOut(part))
        case .event(let event): context.fireUserInboundEventTriggered(event)
        case .failure(let error): context.fireErrorCaught(error)
        }
    }
}
