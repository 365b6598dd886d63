import NIOCore
import NIOPosix

/// Sends bytes to a port and gives back every byte until the other side closes: what a test must see of HTTP.
enum RawConnection {
    static func exchange(_ request: String, port: Int) async throws -> String {
        try await exchange([request], port: port)
    }

    /// Sends the parts one by one, each when the one before has left.
    static func exchange(_ parts: [String], port: Int) async throws -> String {
        let everything = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: String.self)
        let connecting = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Collector(everything: everything))
                }
            }
            .connect(host: "127.0.0.1", port: port)
        connecting.cascadeFailure(to: everything)
        let channel = try await connecting.get()
        for part in parts { try await channel.writeAndFlush(ByteBuffer(string: part)) }
        return try await everything.futureResult.get()
    }

    static func post(_ path: String, _ body: String, keepAlive: Bool = false) -> String {
        "POST \(path) HTTP/1.1\r\nHost: store\r\nContent-Length: \(body.utf8.count)\r\n"
            + (keepAlive ? "" : "Connection: close\r\n") + "\r\n" + body
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let everything: EventLoopPromise<String>
        private var bytes = ByteBuffer()

        init(everything: EventLoopPromise<String>) {
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
