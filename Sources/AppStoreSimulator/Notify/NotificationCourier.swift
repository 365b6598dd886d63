import NIOCore
import NIOPosix

/// Posts notifications, each on a connection of its own.
struct NotificationCourier: Sendable {
    /// Apple does not wait long for an answer.
    private static let answerSecondsMax: Int64 = 5
    private static let connectSecondsMax: Int64 = 2

    let group: MultiThreadedEventLoopGroup

    /// Posts a body and returns how it went. It throws nothing: a failure is a result too.
    func post(_ body: [UInt8], to address: NotificationAddress) async -> SendResult {
        let loop = group.next()
        let result = loop.makePromise(of: SendResult.self)
        let timeout = loop.scheduleTask(in: .seconds(Self.answerSecondsMax)) { result.succeed(.timedOut) }
        defer { timeout.cancel() }
        let channel: any Channel
        do {
            channel = try await ClientBootstrap(group: loop)
                .connectTimeout(.seconds(Self.connectSecondsMax))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(StatusReader(result))
                    }
                }
                .connect(host: address.host, port: address.port).get()
            var bytes = ByteBuffer()
            bytes.writeString(
                "POST \(address.path) HTTP/1.1\r\nHost: \(address.host):\(address.port)\r\n"
                    + "Content-Type: application/json\r\nContent-Length: \(body.count)\r\nConnection: close\r\n\r\n")
            bytes.writeBytes(body)
            channel.writeAndFlush(bytes, promise: nil)
        } catch {
            result.succeed(.socketIssue)
            return .socketIssue
        }
        defer { channel.close(promise: nil) }
        do {
            return try await result.futureResult.get()
        } catch {
            return .noResponse
        }
    }
}

/// Reads the status of an HTTP response and ignores the rest, as Apple does.
private final class StatusReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let result: EventLoopPromise<SendResult>
    private var bytes = ByteBuffer()

    init(_ result: EventLoopPromise<SendResult>) {
        self.result = result
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes.writeImmutableBuffer(unwrapInboundIn(data))
        guard let end = bytes.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) else { return }
        let words = bytes.readableBytesView[..<end].split(separator: UInt8(ascii: " "))
        let status = words.count > 1 ? Int(String(decoding: words[1], as: UTF8.self)) : nil
        result.succeed(status.map { SendResult(status: $0) } ?? .invalidResponse)
    }

    func channelInactive(context: ChannelHandlerContext) {
        result.succeed(bytes.readableBytes == 0 ? .noResponse : .prematureClose)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        result.succeed(.socketIssue)
        context.close(promise: nil)
    }
}
