import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypes

/// A connection that is admitted within the server's limit, or refused.
struct LimitedConnection<Connection: ServerChildChannel>: ServerChildChannel {
    let connection: Connection
    let room: ConnectionLimit

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Connection.Value> {
        connection.setup(channel: channel, logger: logger).flatMapThrowing { value in
            let open = OpenConnection(channel)
            let watch = ConnectionWatch(open, isWelcome: room.admit(open))
            channel.closeFuture.whenComplete { _ in room.leave(open) }
            let pipeline = channel.pipeline.syncOperations
            let counting = try pipeline.handler(type: HTTPConnectionStateHandler.self)
            try pipeline.addHandler(watch, position: .before(counting))
            return value
        }
    }

    func handle(value: Connection.Value, logger: Logger) async {
        await connection.handle(value: value, logger: logger)
    }
}

/// A handler that records when requests begin and are answered. A connection that was not admitted gets 503 and is
/// closed.
final class ConnectionWatch: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let connection: OpenConnection
    private let isWelcome: Bool
    private var isEnding = false

    /// Creates the handler of a connection.
    init(_ connection: OpenConnection, isWelcome: Bool) {
        self.connection = connection
        self.isWelcome = isWelcome
    }

    func channelActive(context: ChannelHandlerContext) {
        if !isWelcome { refuse(context) }
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head = unwrapInboundIn(data), !isWelcome || !connection.begin() { isEnding = true }
        if !isEnding { context.fireChannelRead(data) }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        // Recorded before the write, because the next request may begin during it.
        if case .end = unwrapOutboundIn(data) { connection.end() }
        context.write(data, promise: promise)
    }

    private func refuse(_ context: ChannelHandlerContext) {
        let fields: HTTPFields = [
            .connection: "close", .contentLength: "0", .retryAfter: "1", .server: HTTPServer.name,
        ]
        context.write(
            wrapOutboundOut(.head(HTTPResponse(status: .serviceUnavailable, headerFields: fields))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        context.close(promise: nil)
    }
}
