import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import Synchronization

/// Gathers one answer on the client's event loop, up to a bounded size; keeps the part that arrived before a failure.
final class AnswerGathering: HTTPClientResponseDelegate {
    typealias Response = Void

    /// The answer announced or contained more bytes than allowed.
    struct TooLarge: Error {}

    /// The answer comes so slowly that it only occupies a connection.
    struct TooSlow: Error {}

    /// The seconds a body may arrive at any speed, and the minimum average in bytes per second from then on.
    static let slowSecondsMax = 5.0
    static let bytesPerSecondMin = 1024.0

    private struct Arrived {
        var result = CallResult()
        var heads = 0
        var bodyBegan = NIODeadline.distantFuture
    }

    private let bytesMax: Int
    private let slowSecondsMax: Double
    private let arrived = Mutex(Arrived())

    init(bytesMax: Int, slowSecondsMax: Double = AnswerGathering.slowSecondsMax) {
        self.bytesMax = bytesMax
        self.slowSecondsMax = slowSecondsMax
    }

    /// The part that has arrived.
    var result: CallResult { arrived.withLock { $0.result } }

    /// Whether the answer came from an address other than the one asked.
    var followedRedirect: Bool { arrived.withLock { $0.heads > 1 } }

    func didVisitURL(task: HTTPClient.Task<Void>, _ request: HTTPClient.Request, _ head: HTTPResponseHead) {
        arrived.withLock { $0.heads += 1 }
    }

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        arrived.withLock { arrived in
            arrived.result.httpStatus = Int(head.status.code)
            arrived.result.headers = head.headers
            arrived.bodyBegan = .now()
        }
        let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
        if announced > bytesMax { return task.eventLoop.makeFailedFuture(TooLarge()) }
        // An announced length does not justify reserving much memory before the bytes arrive.
        arrived.withLock { $0.result.body.reserveCapacity(min(max(announced, 0), 1 << 20)) }
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
        let refusal: (any Error)? = arrived.withLock { arrived in
            guard arrived.result.body.count + buffer.readableBytes <= bytesMax else {
                arrived.result.body = []
                return TooLarge()
            }
            arrived.result.body.append(contentsOf: buffer.readableBytesView)
            let seconds = Double((NIODeadline.now() - arrived.bodyBegan).nanoseconds) / 1e9
            let isSlow = Double(arrived.result.body.count) < seconds * Self.bytesPerSecondMin
            return isSlow && seconds > slowSecondsMax ? TooSlow() : nil
        }
        return refusal.map { task.eventLoop.makeFailedFuture($0) } ?? task.eventLoop.makeSucceededVoidFuture()
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {}
}
