import NIOCore
import NIOPosix

/// Sends bytes to a port and gives back every byte until the other side closes: what a test must see of the wire.
enum RawExchange {
    /// - Parameters:
    ///   - request: What is sent at once.
    ///   - awaited: What is waited for before `rest` is sent.
    ///   - end: Ends the exchange when it arrives, where the other side may wait for more.
    ///   - isLast: Whether the sending side closes after the request.
    ///   - pieceBytes: The size of the pieces in which the request is sent; nil sends it at once.
    static func send(
        _ request: String, awaiting awaited: String? = nil, then rest: String = "", port: Int, until end: String? = nil,
        isLast: Bool = false, pieceBytes: Int? = nil
    ) async throws -> String {
        let everything = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: String.self)
        let connecting = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        Collector(everything, awaited: awaited, rest: rest, end: end))
                }
            }
            .connect(host: "127.0.0.1", port: port)
        connecting.cascadeFailure(to: everything)
        let channel = try await connecting.get()
        var bytes = ByteBuffer(string: request)
        while let piece = bytes.readSlice(length: min(pieceBytes ?? bytes.readableBytes, bytes.readableBytes)),
            piece.readableBytes > 0
        {
            // A piece that the other side refuses is seen by the end of the exchange.
            try? await channel.writeAndFlush(piece)
        }
        if isLast { channel.close(mode: .output, promise: nil) }
        return try await everything.futureResult.get()
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let everything: EventLoopPromise<String>
        private var awaited: String?
        private let rest: String
        private let end: String?
        private var bytes = ByteBuffer()

        init(_ everything: EventLoopPromise<String>, awaited: String?, rest: String, end: String?) {
            self.everything = everything
            (self.awaited, self.rest, self.end) = (awaited, rest, end)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes.writeImmutableBuffer(unwrapInboundIn(data))
            let text = String(buffer: bytes)
            if let awaited, text.contains(awaited) {
                self.awaited = nil
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: rest)), promise: nil)
            }
            if let end, text.contains(end) { context.close(promise: nil) }
        }

        func channelInactive(context: ChannelHandlerContext) {
            everything.succeed(String(buffer: bytes))
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }
}
