import AppStore
package import AsyncHTTPClient
import Crypto
import Foundation
package import Ledger
import NIOCore
import NIOHTTP1
package import NIOSSL
import Subscriptions

/// The outcome of one call to a receiver.
package enum WebhookOutcome: Sendable, Hashable {
    /// It answered 2xx.
    case delivered
    /// It answered 410: it wants no more.
    case gone
    /// Anything else.
    case failed(WebhookFailure)
}

extension WebhookOutcome {
    /// The outcome in a sentence.
    package var sentence: String {
        switch self {
        case .delivered: "Its receiver answered 2xx."
        case .gone: "Its receiver answered 410: it wants no more."
        case .failed(let failure): failure.reason
        }
    }
}

/// What is sent to a receiver in one call.
package struct WebhookCall: Sendable {
    /// The address.
    package let url: String
    /// The id of the message, the same at each attempt.
    package let id: String
    /// The bytes that are sent and signed.
    package let body: [UInt8]
    /// The secrets that sign, the present one first.
    package let secrets: [WebhookSecret]

    /// Creates a call.
    package init(url: String, id: String, body: [UInt8], secrets: [WebhookSecret]) {
        self.url = url
        self.id = id
        self.body = body
        self.secrets = secrets
    }

    /// Returns the value of `webhook-signature`: a signature of each secret, as Standard Webhooks has it.
    package func signature(at seconds: Int) -> String {
        let signed = Data("\(id).\(seconds).".utf8) + Data(body)
        return secrets.map { secret in
            let code = HMAC<SHA256>.authenticationCode(for: signed, using: SymmetricKey(data: secret.bytes))
            return "v1,\(Data(code).base64EncodedString())"
        }.joined(separator: " ")
    }
}

/// Makes calls to receivers.
package struct WebhookSender: Sendable {
    /// The longest time of a call, in seconds.
    package static let callSecondsMax = 15.0
    /// The most bytes of an answer that are read, and thrown away; a longer answer ends its connection.
    static let answerBytesMax = 64 * 1024
    /// The longest time for that after the status came, in seconds.
    static let drainSecondsMax = 1.0

    /// Makes a call; never throws.
    package let send: @Sendable (WebhookCall) async -> WebhookOutcome

    /// Creates a sender of another kind, for tests.
    package init(send: @escaping @Sendable (WebhookCall) async -> WebhookOutcome) {
        self.send = send
    }
}

extension WebhookSender {
    /// Returns the options of the client that makes the calls. It judges each connection before a message is sent: a name
    /// may mean another machine than at the last look.
    package static func clientConfiguration(
        trusting roots: NIOSSLTrustRoots? = nil,
        judging peer: @escaping @Sendable (IPAddress, _ isSecure: Bool) -> String? = { $0.refusal(secure: $1) }
    ) -> HTTPClient.Configuration {
        var tls = TLSConfiguration.makeClientConfiguration()
        if let roots { tls.trustRoots = roots }
        var configuration = HTTPClient.Configuration()
        configuration.tlsConfiguration = tls
        configuration.redirectConfiguration = .disallow
        configuration.timeout = .init(connect: .seconds(5), read: .seconds(Int64(callSecondsMax)))
        configuration.httpVersion = .http1Only
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit =
            LedgerWebhooks.concurrencyAllowed.upperBound
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.idleTimeout = .seconds(30)
        configuration.http1_1ConnectionDebugInitializer = { channel in
            let isSecure = (try? channel.pipeline.syncOperations.handler(type: NIOSSLClientHandler.self)) != nil
            guard let address = channel.remoteAddress?.ipAddress.flatMap({ IPAddress($0) }) else {
                return Self.refuse(channel, "leads to no address.")
            }
            guard let refusal = peer(address, isSecure) else { return channel.eventLoop.makeSucceededVoidFuture() }
            return Self.refuse(channel, refusal)
        }
        return configuration
    }

    private static func refuse(_ channel: any Channel, _ why: String) -> EventLoopFuture<Void> {
        channel.close(promise: nil)
        return channel.eventLoop.makeFailedFuture(RefusedPeer(reason: "The URL \(why)"))
    }

    /// A sender over a client with `clientConfiguration`; a call has `callSeconds`.
    package static func live(_ client: HTTPClient, callSeconds: Double = callSecondsMax) -> WebhookSender {
        WebhookSender { call in
            do {
                _ = try WebhookAddress(call.url)
                let seconds = Int(Date().timeIntervalSince1970)
                var request = HTTPClientRequest(url: call.url)
                request.method = .POST
                request.headers = [
                    "content-type": "application/json", "user-agent": "perennial", "webhook-id": call.id,
                    "webhook-timestamp": "\(seconds)", "webhook-signature": call.signature(at: seconds),
                ]
                request.body = .bytes(ByteBuffer(bytes: call.body))
                let answer = try await client.execute(
                    request, deadline: .now() + .nanoseconds(Int64(callSeconds * 1e9)))
                await Self.drain(answer.body)
                return Self.outcome(of: answer)
            } catch {
                return .failed(WebhookFailure(Self.sentence(for: error)))
            }
        }
    }

    private static func outcome(of answer: HTTPClientResponse) -> WebhookOutcome {
        let status = Int(answer.status.code)
        switch status {
        case 200..<300: return .delivered
        case 410: return .gone
        case 300..<400:
            return .failed(
                WebhookFailure(
                    status: status, "It answered \(status), a redirect, and none is followed; set its final URL."))
        default:
            let asked = RetryAfter.seconds(in: answer.headers, now: Date()).map { min($0, 86_400) }
            return .failed(WebhookFailure(status: status, "It answered \(status).", retryAfterSeconds: asked))
        }
    }

    /// Reads the rest of an answer, so that its connection serves again. An answer that is long or slow is dropped with its
    /// connection: the status has counted by then.
    private static func drain(_ body: HTTPClientResponse.Body) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                var count = 0
                do {
                    for try await part in body {
                        count += part.readableBytes
                        guard count <= Self.answerBytesMax else { return }
                    }
                } catch {}
            }
            group.addTask { try? await Task.sleep(for: .seconds(Self.drainSecondsMax)) }
            await group.next()
            group.cancelAll()
        }
    }

    private static func sentence(for error: any Error) -> String {
        if let refused = error as? RefusedPeer { return refused.reason }
        if let error = error as? LedgerError { return error.message }
        if let error = error as? HTTPClientError {
            switch error {
            case .deadlineExceeded, .readTimeout: return "It did not answer within \(Int(callSecondsMax)) seconds."
            case .connectTimeout: return "No connection was made within 5 seconds."
            case .remoteConnectionClosed: return "It closed the connection without an answer."
            default: return "The call failed: \(error.shortDescription)."
            }
        }
        if error is NIOSSLError || error is NIOSSLExtraError || "\(type(of: error))".contains("SSL") {
            return
                "The TLS handshake failed, or its certificate is not one to trust; see that it is valid for the host."
        }
        if let error = error as? IOError { return "The network failed: \(error)." }
        if "\(type(of: error))".contains("NIOConnectionError") {
            return "No connection was made; see that the host is known and listens."
        }
        return "The call failed: \(type(of: error))."
    }
}

extension Tracker {
    /// Sends a message of the type `webhook.test`, and returns what came back. Throws `notFound` for an unknown webhook.
    package func testWebhook(_ id: Int32) async throws -> WebhookOutcome {
        let webhook = try await ledger.webhooks.webhook(id)
        let secrets = try await ledger.webhooks.secrets(of: id)
        guard let webhookSender else { throw LedgerError(.mismatch, "This process makes no calls to receivers.") }
        let now = try await ledger.now().iso8601
        return await webhookSender.send(
            WebhookCall(
                url: webhook.url, id: "msg_\(UUID().uuidString.lowercased())",
                body: Array(#"{"type":"webhook.test","timestamp":"\#(now)","data":{"webhook":\#(id)}}"#.utf8),
                secrets: secrets))
    }
}

/// A connection to a machine that webhooks must not reach.
private struct RefusedPeer: Error {
    let reason: String
}
