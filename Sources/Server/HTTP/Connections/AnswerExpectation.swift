import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTPTypes

/// A handler that answers `Expect: 100-continue` with 100 only when the body is wanted. A request that is refused for
/// its key, its length or its path gets the refusal, and its caller need not send the body (RFC 9110, section 10.1.1).
final class AnswerExpectation: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// The event that a handler begins to read the body of a request.
    struct BodyWanted: Sendable {}

    private var isExpecting = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let request): isExpecting = request.expectsContinue
        // The body arrives without an invitation.
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
        // The caller may still send the body, so the connection cannot be used again.
        isExpecting = false
        head.headerFields[.connection] = "close"
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
}

/// Middleware that requests the awaited body of a request as soon as a handler reads it.
struct ContinueMiddleware: RouterMiddleware {
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
    /// Whether its caller sends the body only on request.
    fileprivate var expectsContinue: Bool { headerFields[.expect]?.lowercased() == "100-continue" }
}

/// A body that arrives only on request.
private struct AwaitedBody: AsyncSequence, Sendable {
    let body: RequestBody
    let channel: any Channel

    struct AsyncIterator: AsyncIteratorProtocol {
        var body: RequestBody.AsyncIterator
        /// Nil once the body was requested.
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
