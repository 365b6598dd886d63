import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import Synchronization

/// Gathers one answer on the client's event loop, up to a bounded size; what arrived before a failure is kept.
final class AnswerGathering: HTTPClientResponseDelegate {
    typealias Response = Void

    /// The answer announced or brought more bytes than allowed.
    struct TooLarge: Error {}

    private struct Arrived {
        var exchange = Exchange()
        var heads = 0
    }

    private let bytesMax: Int
    private let arrived = Mutex(Arrived())

    init(bytesMax: Int) {
        self.bytesMax = bytesMax
    }

    /// What has arrived.
    var exchange: Exchange { arrived.withLock { $0.exchange } }

    /// Whether the answer came from somewhere else than where the question went.
    var followedRedirect: Bool { arrived.withLock { $0.heads > 1 } }

    func didVisitURL(task: HTTPClient.Task<Void>, _ request: HTTPClient.Request, _ head: HTTPResponseHead) {
        arrived.withLock { $0.heads += 1 }
    }

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        arrived.withLock { arrived in
            arrived.exchange.httpStatus = Int(head.status.code)
            arrived.exchange.headers = head.headers
        }
        let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
        if announced > bytesMax { return task.eventLoop.makeFailedFuture(TooLarge()) }
        // What a server announces is no reason to hold much memory before it comes.
        arrived.withLock { $0.exchange.body.reserveCapacity(min(max(announced, 0), 1 << 20)) }
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
        let fits = arrived.withLock { arrived in
            guard arrived.exchange.body.count + buffer.readableBytes <= bytesMax else {
                arrived.exchange.body = []
                return false
            }
            arrived.exchange.body.append(contentsOf: buffer.readableBytesView)
            return true
        }
        return fits ? task.eventLoop.makeSucceededVoidFuture() : task.eventLoop.makeFailedFuture(TooLarge())
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {}
}
