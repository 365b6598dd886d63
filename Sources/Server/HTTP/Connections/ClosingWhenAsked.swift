import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// A connection that ends after a request that asks for it or that is of HTTP/1.0.
struct ClosingWhenAsked<Connection: ServerChildChannel>: ServerChildChannel {
    let connection: Connection

    /// Adds the handler directly behind the decoder: no later handler knows the HTTP version.
    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Connection.Value> {
        connection.setup(channel: channel, logger: logger).flatMapThrowing { value in
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(CloseWhenAsked(), position: .after(decoder))
            return value
        }
    }

    func handle(value: Connection.Value, logger: Logger) async {
        await connection.handle(value: value, logger: logger)
    }
}

/// A handler that accepts no request after one that asks for the end of its connection. A request of HTTP/1.0 counts as
/// such.
///
/// RFC 9112, sections 9.3, 9.6 and C.2.2: a caller of HTTP/1.0 reads until the connection ends, and data behind the
/// last request is not processed. RFC 9110, section 10.1.1: an expectation in HTTP/1.0 is ignored.
final class CloseWhenAsked: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Whether the connection ends after this request.
    private var isLast = false
    /// Whether the last request has arrived.
    private var isOver = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        switch unwrapInboundIn(data) {
        case .head(var head):
            let isOld = (head.version.major, head.version.minor) < (1, 1)
            isLast = isOld || head.headers[canonicalForm: "connection"].contains { $0.lowercased() == "close" }
            guard isLast else { break }
            // The only spelling that the later handlers understand.
            head.headers.replaceOrAdd(name: "connection", value: "close")
            if isOld { head.headers.remove(name: "expect") }
            return context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body: break
        case .end: isOver = isLast
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard isOver || isLast, case .head(var head) = unwrapOutboundIn(data), head.status != .continue else {
            return context.write(data, promise: promise)
        }
        head.headers.replaceOrAdd(name: "Connection", value: "close")
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
}
