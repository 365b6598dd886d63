import Hummingbird
import Logging
import NIOCore
import NIOHTTPTypes

/// A handler that replaces Hummingbird's bare 400 with a problem. A request that cannot be parsed as HTTP gets that
/// status and reaches no route.
final class ExplainUnreadable: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let limits: ServerLimits
    private let logger: Logger

    /// Creates a handler whose problem names the limits of a request head.
    init(limits: ServerLimits, logger: Logger) {
        self.limits = limits
        self.logger = logger
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(let head) = unwrapOutboundIn(data), head.status == .badRequest,
            head.headerFields[.requestID] == nil
        else { return context.write(data, promise: promise) }
        let requestID = RequestID.random()
        let body = ByteBuffer(bytes: JSONText(problem.json(requestID: requestID)).bytes)
        let fields: HTTPFields = [
            .contentType: Problem.mediaType, .contentLength: String(body.readableBytes), .cacheControl: "no-store",
            .connection: "close", .requestID: requestID,
        ]
        logger.debug("what cannot be read was refused", metadata: ["request_id": "\(requestID)"])
        context.write(wrapOutboundOut(.head(HTTPResponse(status: head.status, headerFields: fields))), promise: nil)
        context.write(wrapOutboundOut(.body(body)), promise: promise)
    }

    private var problem: Problem {
        Problem(
            .invalid,
            """
            This cannot be read as an HTTP request. Its head may have \(limits.headerFieldsMax) headers, \
            \(limits.headerListBytesMax / 1024) KiB, and \(limits.headerBytesMax / 1024) KiB in a line.
            """)
    }
}
