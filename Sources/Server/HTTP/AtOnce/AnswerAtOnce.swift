import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypes

/// A handler that answers a request directly where the answer is known. All other requests go on to Hummingbird, which
/// starts a task for each.
final class AnswerAtOnce: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundOut = HTTPResponsePart

    private let answer: @Sendable (HTTPRequest) -> WrittenAnswer?
    /// A request that may still turn out to have a body. A request with a body is not answered here.
    private var held: HTTPRequest?

    /// Creates a handler that answers with the result of `answer`, and passes the request on where that is nil.
    init(_ answer: @escaping @Sendable (HTTPRequest) -> WrittenAnswer?) {
        self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let request) = unwrapInboundIn(data), request.isPlain {
            held = request
            return
        }
        guard let request = held else { return context.fireChannelRead(data) }
        held = nil
        // A caller that does not read gets no further answer here. Hummingbird waits until it reads.
        if case .end = unwrapInboundIn(data), context.channel.isWritable, let answer = answer(request) {
            return write(answer, context)
        }
        context.fireChannelRead(wrapInboundOut(.head(request)))
        context.fireChannelRead(data)
    }

    private func write(_ answer: WrittenAnswer, _ context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(.head(answer.head)), promise: nil)
        if let body = answer.body { context.write(wrapOutboundOut(.body(body)), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}

extension HTTPRequest {
    /// Whether it is a GET without headers about how it or its response is to be sent.
    fileprivate var isPlain: Bool {
        method == .get && headerFields[.connection] == nil && headerFields[.expect] == nil
            && headerFields[.contentLength] == nil
    }
}

/// A connection that answers directly where the answer is known.
struct AnsweringAtOnce<Connection: ServerChildChannel>: ServerChildChannel {
    let connection: Connection
    let answer: @Sendable (HTTPRequest) -> WrittenAnswer?

    /// Adds the handler behind the one that counts the connection's requests, and before the one that starts a task for
    /// each.
    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Connection.Value> {
        connection.setup(channel: channel, logger: logger).flatMapThrowing { value in
            let pipeline = channel.pipeline.syncOperations
            let counting = try pipeline.handler(type: HTTPConnectionStateHandler.self)
            try pipeline.addHandler(AnswerAtOnce(answer), position: .after(counting))
            return value
        }
    }

    func handle(value: Connection.Value, logger: Logger) async {
        await connection.handle(value: value, logger: logger)
    }
}
