import Foundation
import NIOCore
import NIOPosix

/// Sends the same kind of request over and over on many connections, as cheaply as it can be done.
struct LoadGenerator: Sendable {
    let port: Int
    let connections: Int
    /// Requests a second of all connections together; nil for as many as there can be.
    var offered: Double?
    /// The most requests of all connections together.
    var requestsMax = Int.max

    /// Between two requests of one connection.
    private var interval: TimeAmount? {
        offered.map { .nanoseconds(Int64(Double(connections) / $0 * 1_000_000_000)) }
    }

    /// Sends the requests that `request` makes by number for some seconds.
    func run(seconds: Double, request: @escaping @Sendable (Int) -> ByteBuffer) async throws -> LoadResult {
        let group = MultiThreadedEventLoopGroup.singleton
        let start = NIODeadline.now()
        let end = start + .nanoseconds(Int64(seconds * 1_000_000_000))
        return try await withThrowingTaskGroup(of: [Int64].self) { tasks in
            for connection in 0..<connections {
                tasks.addTask {
                    let finished = group.next().makePromise(of: [Int64].self)
                    let turn = interval.map { $0 * connection / connections }
                    _ = try await ClientBootstrap(group: group)
                        .channelInitializer { channel in
                            channel.eventLoop.makeCompletedFuture {
                                try channel.pipeline.syncOperations.addHandler(
                                    RepeatingRequest(
                                        first: connection, step: connections, end: end, requestsMax: requestsMax,
                                        request: request,
                                        pace: interval.flatMap { interval in turn.map { (start + $0, interval) } },
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

    /// This and another load as one.
    func joined(by other: LoadResult) -> LoadResult {
        LoadResult(latencies: (latencies + other.latencies).sorted(), seconds: seconds + other.seconds)
    }

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

extension TimeAmount {
    fileprivate static func / (time: TimeAmount, parts: Int) -> TimeAmount {
        .nanoseconds(time.nanoseconds / Int64(parts))
    }
}

/// One connection: sends a request, waits for the whole answer, sends the next; at a pace, not before its turn.
private final class RepeatingRequest: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var number: Int
    private let step: Int
    private let end: NIODeadline
    private let requestsMax: Int
    private let request: @Sendable (Int) -> ByteBuffer
    private let interval: TimeAmount?
    private let finished: EventLoopPromise<[Int64]>
    private var arrived = ByteBuffer()
    private var latencies: [Int64] = []
    /// When the request was sent, or should have been: one that waits for a late answer is late itself.
    private var dueAt: NIODeadline

    init(
        first: Int, step: Int, end: NIODeadline, requestsMax: Int, request: @escaping @Sendable (Int) -> ByteBuffer,
        pace: (first: NIODeadline, interval: TimeAmount)?, finished: EventLoopPromise<[Int64]>
    ) {
        number = first
        self.step = step
        self.end = end
        self.requestsMax = requestsMax
        self.request = request
        dueAt = pace?.first ?? .now()
        interval = pace?.interval
        self.finished = finished
    }

    /// An answer that is not HTTP 200 makes the figures worthless.
    struct Refused: Error {}

    func channelActive(context: ChannelHandlerContext) { sendInTurn(context) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var part = unwrapInboundIn(data)
        arrived.writeBuffer(&part)
        guard let length = answerLength() else { return }
        guard arrived.withUnsafeReadableBytes({ $0.starts(with: "HTTP/1.1 200".utf8) }) else {
            finished.fail(Refused())
            return context.close(promise: nil)
        }
        arrived.moveReaderIndex(forwardBy: length)
        arrived.discardReadBytes()
        latencies.append((NIODeadline.now() - dueAt).nanoseconds)
        if let interval { dueAt = dueAt + interval }
        sendInTurn(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        finished.fail(error)
        context.close(promise: nil)
    }

    private func sendInTurn(_ context: ChannelHandlerContext) {
        guard interval != nil else {
            dueAt = .now()
            return send(context)
        }
        context.eventLoop.assumeIsolated().scheduleTask(deadline: dueAt) { self.send(context) }
    }

    private func send(_ context: ChannelHandlerContext) {
        guard NIODeadline.now() < end, number < requestsMax else {
            finished.succeed(latencies)
            return context.close(promise: nil)
        }
        context.writeAndFlush(wrapOutboundOut(request(number)), promise: nil)
        number += step
    }

    /// Bytes of the whole answer, once they are all there.
    private func answerLength() -> Int? {
        arrived.withUnsafeReadableBytes { bytes in
            guard let base = bytes.baseAddress else { return nil }
            var (start, body) = (0, 0)
            while let newline = memchr(base + start, 0x0A, bytes.count - start) {
                let end = UnsafeRawPointer(newline) - base
                if end - start <= 1 { return bytes.count > end + body ? end + 1 + body : nil }
                body = Self.contentLength(base + start, base + end) ?? body
                start = end + 1
            }
            return nil
        }
    }

    /// What a line of a head says of the length of the body. The server writes the names of its headers in lower case or
    /// as words.
    private static func contentLength(_ line: UnsafeRawPointer, _ end: UnsafeRawPointer) -> Int? {
        let name: StaticString = "content-length:"
        let count = name.utf8CodeUnitCount
        guard end - line > count, strncasecmp(line, name.utf8Start, count) == 0 else { return nil }
        return UnsafeRawBufferPointer(start: line + count, count: end - line - count).reduce(0) { number, byte in
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? number * 10 + Int(byte & 0x0F) : number
        }
    }
}
