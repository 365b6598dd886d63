import Crypto
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport
import Tracking

/// A receiver of a webhook over HTTP: it checks each signature, remembers a message before it answers, and dies with all its
/// connections, whatever it has answered by then.
final class MortalReceiver: Sendable {
    private struct Life {
        var port = 0
        var listener: (any Channel)?
        var connections: [ObjectIdentifier: any Channel] = [:]
        var secrets: [WebhookSecret] = []
        var refused = 0
    }

    /// What it took in all its lives.
    let memory = WebhookMirror()
    private let life = Mutex(Life())

    /// Where it listens.
    var url: String { "http://127.0.0.1:\(life.withLock { $0.port })/" }

    /// The calls whose signature or body it refused.
    var refused: Int { life.withLock { $0.refused } }

    /// Takes what this secret signed.
    func know(_ secret: WebhookSecret) { life.withLock { $0.secrets.append(secret) } }

    /// Listens, on the port of its first life.
    func start() async throws {
        let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { [self] channel in
                life.withLock { $0.connections[ObjectIdentifier(channel)] = channel }
                channel.closeFuture.whenComplete { [self] _ in
                    life.withLock { $0.connections[ObjectIdentifier(channel)] = nil }
                }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Exchange(receiver: self))
                }
            }
            .bind(host: "127.0.0.1", port: life.withLock { $0.port }).get()
        life.withLock {
            $0.listener = listener
            $0.port = listener.localAddress?.port ?? 0
        }
    }

    /// Dies: nothing that it has not sent yet is ever sent.
    func kill() async {
        let channels = life.withLock { life in
            defer { life.listener = nil }
            return [life.listener].compactMap(\.self) + life.connections.values
        }
        for channel in channels { try? await channel.close() }
    }

    /// Takes a message; returns the status of the answer.
    fileprivate func take(_ headers: HTTPHeaders, _ body: [UInt8]) -> HTTPResponseStatus {
        guard let id = headers.first(name: "webhook-id"), let at = headers.first(name: "webhook-timestamp"),
            let signatures = headers.first(name: "webhook-signature")?.split(separator: " ").map(String.init),
            life.withLock({ $0.secrets }).contains(where: { secret in
                let code = HMAC<SHA256>.authenticationCode(
                    for: Data("\(id).\(at).".utf8) + Data(body), using: SymmetricKey(data: secret.bytes))
                return signatures.contains("v1,\(Data(code).base64EncodedString())")
            }), let heard = try? JSONDecoder().decode(Heard.self, from: Data(body))
        else {
            life.withLock { $0.refused += 1 }
            return .badRequest
        }
        memory.take(id, heard)
        return .noContent
    }
}

/// One connection to the receiver. It answers a little after it took a message, so that a kill comes in between.
private final class Exchange: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let receiver: MortalReceiver
    private var headers = HTTPHeaders()
    private var body: [UInt8] = []

    init(receiver: MortalReceiver) { self.receiver = receiver }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): (headers, body) = (head.headers, [])
        case .body(let part): body += part.readableBytesView
        case .end:
            let head = HTTPResponseHead(version: .http1_1, status: receiver.take(headers, body))
            let channel = context.channel
            context.eventLoop.scheduleTask(in: .milliseconds(.random(in: 0...80))) {
                channel.write(HTTPServerResponsePart.head(head), promise: nil)
                channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
            }
        }
    }
}
