import NIOCore
import NIOPosix

/// Sends bytes to a port and gives back every byte until the other side closes: what a test must see of the wire.
enum RawExchange {
    static func send(_ request: String, port: Int) async throws -> String {
        let everything = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: String.self)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Collector(everything))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        try await channel.writeAndFlush(ByteBuffer(string: request))
        return try await everything.futureResult.get()
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let everything: EventLoopPromise<String>
        private var bytes = ByteBuffer()

        init(_ everything: EventLoopPromise<String>) {
            self.everything = everything
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes.writeImmutableBuffer(unwrapInboundIn(data))
        }

        func channelInactive(context: ChannelHandlerContext) {
            everything.succeed(String(buffer: bytes))
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }
}
