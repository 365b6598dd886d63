import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTPTypes

/// Answers `Expect: 100-continue` with 100 when the body is wanted, and not before: a request that is refused for its key,
/// its length or its path gets that answer, and its caller need not send the body (RFC 9110, section 10.1.1).
final class AnswerExpectation: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// The body of a request begins to be read.
    struct BodyWanted: Sendable {}

    private var isExpecting = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let request): isExpecting = request.expectsContinue
        // It comes without being asked for.
        case .body, .end: isExpecting = false
        }
        context.fireChannelRead(data)
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is BodyWanted else { return context.triggerUserOutboundEvent(event, promise: promise) }
        guard isExpecting else {
            promise?.succeed()
            return
        }
        isExpecting = false
        context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: promise)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard isExpecting, case .head(var head) = unwrapOutboundIn(data) else {
            return context.write(data, promise: promise)
        }
        // Whether the body comes after all is not known, so the connection is of no further use.
        isExpecting = false
        head.headerFields[.connection] = "close"
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
}

/// Says that the body of a request is wanted as soon as it is read.
struct AskForBody: RouterMiddleware {
    func handle(
        _ request: Request, context: CallerContext, next: (Request, CallerContext) async throws -> Response
    ) async throws -> Response {
        guard request.head.expectsContinue else { return try await next(request, context) }
        var request = request
        request.body = RequestBody(asyncSequence: AwaitedBody(body: request.body, channel: context.channel))
        return try await next(request, context)
    }
}

extension HTTPRequest {
    /// Whether its caller sends the body only when it is wanted.
    fileprivate var expectsContinue: Bool { headerFields[.expect]?.lowercased() == "100-continue" }
}

/// A body that comes only when it is asked for.
private struct AwaitedBody: AsyncSequence, Sendable {
    let body: RequestBody
    let channel: any Channel

    struct AsyncIterator: AsyncIteratorProtocol {
        var body: RequestBody.AsyncIterator
        /// Nil once the body was asked for.
        var channel: (any Channel)?

        mutating func next() async throws -> ByteBuffer? {
            channel?.triggerUserOutboundEvent(AnswerExpectation.BodyWanted(), promise: nil)
            channel = nil
            return try await body.next()
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(body: body.makeAsyncIterator(), channel: channel)
    }
}
