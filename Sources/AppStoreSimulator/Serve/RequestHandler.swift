import NIOCore
import NIOHTTP1

/// Collects one request, asks the store, and sends the answer as badly as it was meant. Requests of one connection
/// come one after the other: the pipeline's assistance sees to that.
final class RequestHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let simulator: Simulator
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []
    private var isTooLarge = false

    init(simulator: Simulator) {
        self.simulator = simulator
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body.removeAll(keepingCapacity: true)
            isTooLarge = false
        case .body(let buffer):
            guard body.count + buffer.readableBytes <= simulator.options.bodyBytesMax else {
                isTooLarge = true
                return
            }
            body.append(contentsOf: buffer.readableBytesView)
        case .end:
            guard let head else { return }
            self.head = nil
            let reply =
                isTooLarge
                ? SimulatorReply(code: 413, body: Array("Request Entity Too Large".utf8))
                : simulator.respond(
                    to: SimulatorRequest(method: head.method.rawValue, path: head.uri, body: body))
            deliver(reply, keepsAlive: head.isKeepAlive, context: context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func deliver(_ reply: SimulatorReply, keepsAlive: Bool, context: ChannelHandlerContext) {
        guard reply.delaySeconds > 0 else { return send(reply, keepsAlive: keepsAlive, context: context) }
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: .milliseconds(Int64(reply.delaySeconds * 1000))) {
            let (handler, context) = bound.value
            guard context.channel.isActive else { return }
            handler.send(reply, keepsAlive: keepsAlive, context: context)
        }
    }

    private func send(_ reply: SimulatorReply, keepsAlive: Bool, context: ChannelHandlerContext) {
        var sent = reply.body[...]
        var staysOpen = keepsAlive
        switch reply.delivery {
        case .whole: break
        case .never: return context.close(promise: nil)
        case .cut(let bytes):
            sent = sent.prefix(bytes)
            staysOpen = false
        }
        var headers = HTTPHeaders(reply.headers.map { ($0.name, $0.value) })
        headers.add(name: "Content-Length", value: String(reply.body.count))
        if !keepsAlive { headers.add(name: "Connection", value: "close") }
        let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: reply.code), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: sent)))), promise: nil)
        guard !staysOpen else { return context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil) }
        // A cut answer never gets its end: the peer sees the connection close too early.
        let last = context.eventLoop.makePromise(of: Void.self)
        switch reply.delivery {
        case .whole, .never: context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: last)
        case .cut: context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer()))), promise: last)
        }
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        last.futureResult.whenComplete { _ in bound.value.close(promise: nil) }
    }
}
