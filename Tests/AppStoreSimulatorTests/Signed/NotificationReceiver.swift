import Foundation
import NIOCore
import NIOPosix
import Synchronization

@testable import AppStoreSimulator

/// An app's server over real HTTP, which keeps the bodies that were posted and answers with what a test wants.
final class NotificationReceiver: Sendable {
    private struct Kept: Sendable {
        let body: [UInt8]
        let uuid: String?
    }

    private let kept = Mutex<[Kept]>([])
    private let answer: @Sendable (_ body: [UInt8], _ earlier: Int) -> Int

    /// `answer` returns the HTTP status for a body that came so many times before.
    init(_ answer: @escaping @Sendable (_ body: [UInt8], _ earlier: Int) -> Int = { _, _ in 200 }) {
        self.answer = answer
    }

    var bodies: [[UInt8]] { kept.withLock { $0.map(\.body) } }

    /// The claims of the signed bodies, in the order in which they came.
    var claims: [[String: Any]] {
        bodies.map { body in
            let json = (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any]
            return SignedClaims.of(json?.text("signedPayload") ?? "")
        }
    }

    /// Listens while `body` runs with the address.
    func listening(_ body: (String) async throws -> Void) async throws {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { child in
                child.eventLoop.makeCompletedFuture {
                    try child.pipeline.syncOperations.addHandler(Connection(receiver: self))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        do {
            try await body("http://127.0.0.1:\(channel.localAddress?.port ?? 0)/v1/notifications/t?x=1")
        } catch {
            try await channel.close()
            throw error
        }
        try await channel.close()
    }

    fileprivate func status(of body: [UInt8]) -> Int {
        let json = (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any]
        let claims = SignedClaims.of(json?.text("signedPayload") ?? "")
        let earlier = kept.withLock { kept in
            kept.append(Kept(body: body, uuid: claims.text("notificationUUID")))
            return kept.dropLast().count { $0.uuid == kept.last?.uuid }
        }
        return answer(body, earlier)
    }

    private final class Connection: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let receiver: NotificationReceiver
        private var reader = StoreRequestReader(bodyBytesMax: 1 << 20)

        init(receiver: NotificationReceiver) {
            self.receiver = receiver
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var bytes = unwrapInboundIn(data)
            reader.append(&bytes)
            guard let request = try? reader.next() else { return }
            let isWhole = request.head.path == "/v1/notifications/t?x=1" && request.head.method == "POST"
            let status = isWhole ? receiver.status(of: request.body) : 404
            let reply = ByteBuffer(string: "HTTP/1.1 \(status) So\r\nContent-Length: 0\r\n\r\n")
            context.writeAndFlush(wrapOutboundOut(reply), promise: nil)
        }
    }
}
