import Foundation
import NIOCore
import NIOPosix

/// Sends the same kind of request over and over on many connections, as cheaply as it can be done.
struct LoadGenerator: Sendable {
    let port: Int
    let connections: Int

    /// Sends the requests that `request` makes by number for some seconds.
    func run(seconds: Double, request: @escaping @Sendable (Int) -> ByteBuffer) async throws -> LoadResult {
        let group = MultiThreadedEventLoopGroup.singleton
        let end = NIODeadline.now() + .nanoseconds(Int64(seconds * 1_000_000_000))
        return try await withThrowingTaskGroup(of: [Int64].self) { tasks in
            for connection in 0..<connections {
                tasks.addTask {
                    let finished = group.next().makePromise(of: [Int64].self)
                    _ = try await ClientBootstrap(group: group)
                        .channelInitializer { channel in
                            channel.eventLoop.makeCompletedFuture {
                                try channel.pipeline.syncOperations.addHandler(
                                    RepeatingRequest(
                                        first: connection, step: connections, end: end, request: request,
                                        finished: finished))
                            }
                        }
                        .connect(host: "127.0.0.1", port: port).get()
                    return try await finished.futureResult.get()
                }
            }
            let latencies = try await tasks.reduce(into: []) { $0 += $1 }
            return LoadResult(latencies: latencies.sorted(), seconds: seconds)
        }
    }
}

/// What a load came to.
struct LoadResult: Sendable {
    /// Nanoseconds, in order.
    let latencies: [Int64]
    let seconds: Double

    var rate: Double { Double(latencies.count) / seconds }

    /// Milliseconds that a share of the requests took at most.
    func milliseconds(atShare share: Double) -> Double {
        guard !latencies.isEmpty else { return 0 }
        return Double(latencies[min(latencies.count - 1, Int(Double(latencies.count) * share))]) / 1_000_000
    }

    /// One line for people.
    func line(_ name: String) -> String {
        "\(name): \(Int(rate))/s, p50 \(milliseconds(atShare: 0.5).shown) ms, p99 \(milliseconds(atShare: 0.99).shown) ms"
    }
}

/// One connection: sends a request, waits for the whole answer, sends the next.
private final class RepeatingRequest: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var number: Int
    private let step: Int
    private let end: NIODeadline
    private let request: @Sendable (Int) -> ByteBuffer
    private let finished: EventLoopPromise<[Int64]>
    private var arrived = ByteBuffer()
    private var latencies: [Int64] = []
    private var sentAt = NIODeadline.now()

    init(
        first: Int, step: Int, end: NIODeadline, request: @escaping @Sendable (Int) -> ByteBuffer,
        finished: EventLoopPromise<[Int64]>
    ) {
        number = first
        self.step = step
        self.end = end
        self.request = request
        self.finished = finished
    }

    /// An answer that is not HTTP 200 makes the figures worthless.
    struct Refused: Error {}

    func channelActive(context: ChannelHandlerContext) { send(context) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var part = unwrapInboundIn(data)
        arrived.writeBuffer(&part)
        guard let length = answerLength() else { return }
        guard arrived.readableBytesView.starts(with: Array("HTTP/1.1 200".utf8)) else {
            finished.fail(Refused())
            return context.close(promise: nil)
        }
        arrived.moveReaderIndex(forwardBy: length)
        arrived.discardReadBytes()
        latencies.append((NIODeadline.now() - sentAt).nanoseconds)
        send(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        finished.fail(error)
        context.close(promise: nil)
    }

    private func send(_ context: ChannelHandlerContext) {
        guard NIODeadline.now() < end else {
            finished.succeed(latencies)
            return context.close(promise: nil)
        }
        sentAt = .now()
        context.writeAndFlush(wrapOutboundOut(request(number)), promise: nil)
        number += step
    }

    /// Bytes of the whole answer, once they are all there.
    private func answerLength() -> Int? {
        let text = arrived.readableBytesView
        guard let head = text.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: text[..<head.lowerBound], as: UTF8.self).lowercased().split(separator: "\r\n")
        let body = lines.first { $0.hasPrefix("content-length:") }?.split(separator: " ").last.flatMap { Int($0) } ?? 0
        let length = head.upperBound - text.startIndex + body
        return text.count >= length ? length : nil
    }
}
