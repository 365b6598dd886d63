import Logging
import NIOCore
import NIOHTTPTypes

/// Answers the requests of one connection one at a time, and no faster than its caller reads.
///
/// A caller may send hundreds of requests in one packet. Without this they would all be handed on, answered, and their
/// answers kept for a caller who may never read them: a few such connections would cost everybody else the memory and the
/// time. Who does not read for a while is let go, for their answer is under way and so they do not count as silent.
final class RequestTurns: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// What came from the caller.
    private enum Arrival {
        case part(HTTPRequestPart)
        case event(Any)
        case failure(any Error)
    }

    private let limits: ServerLimits
    private let logger: Logger
    /// What came behind the request that is being answered, in order.
    private var waiting = CircularBuffer<Arrival>()
    private var isAnswering = false
    /// Whether the server stops: it answers what it has begun, and begins nothing.
    private var isStopping = false
    /// Whether what waited is being passed on: an answer may come before that is over.
    private var isPassingOn = false
    /// Whether more was asked for while something waited.
    private var isMoreWanted = false
    /// Ends the connection, unless its caller reads before.
    private var ending: Scheduled<Void>?

    /// The turns of a connection.
    init(limits: ServerLimits, logger: Logger) {
        self.limits = limits
        self.logger = logger
    }

    func handlerAdded(context: ChannelHandlerContext) {
        // A connection that cannot be told so works without.
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

    /// What waited, up to the next request but one.
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
