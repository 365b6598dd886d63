import AppStore
import Crypto
import Foundation
package import Ledger
import NIOCore
import NIOHTTP1
import NIOPosix
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

    /// Makes a call; never throws.
    package let send: @Sendable (WebhookCall) async -> WebhookOutcome

    /// Creates a sender of another kind, for tests.
    package init(send: @escaping @Sendable (WebhookCall) async -> WebhookOutcome) {
        self.send = send
    }
}

extension WebhookSender {
    /// A sender over connections of its own; a call has `callSeconds`. `judge` says why an address may not be reached.
    package static func live(
        trusting roots: NIOSSLTrustRoots? = nil, callSeconds: Double = callSecondsMax,
        judging judge: @escaping @Sendable (IPAddress, _ isSecure: Bool) -> String? = { $0.refusal(secure: $1) }
    ) throws -> WebhookSender {
        var tls = TLSConfiguration.makeClientConfiguration()
        if let roots { tls.trustRoots = roots }
        tls.applicationProtocols = ["http/1.1"]
        let connections = WebhookConnections(tls: try NIOSSLContext(configuration: tls), judge: judge)
        return WebhookSender { call in
            do {
                let address = try WebhookAddress(call.url)
                let seconds = Int(Date().timeIntervalSince1970)
                let headers: HTTPHeaders = [
                    "content-type": "application/json", "user-agent": "perennial", "webhook-id": call.id,
                    "webhook-timestamp": "\(seconds)", "webhook-signature": call.signature(at: seconds),
                ]
                let answer = try await connections.post(
                    call.body, headers, to: address, within: .nanoseconds(Int64(callSeconds * 1e9)))
                return Self.outcome(of: answer)
            } catch {
                return .failed(WebhookFailure(Self.sentence(for: error)))
            }
        }
    }

    private static func outcome(of answer: WebhookAnswer) -> WebhookOutcome {
        switch answer.status {
        case 200..<300: .delivered
        case 410: .gone
        case 300..<400:
            .failed(
                WebhookFailure(
                    status: answer.status,
                    "It answered \(answer.status), a redirect, and none is followed; set its final URL."))
        default:
            .failed(
                WebhookFailure(
                    status: answer.status, "It answered \(answer.status).",
                    retryAfterSeconds: RetryAfter.seconds(in: answer.headers, now: Date()).map { min($0, 86_400) }))
        }
    }

    /// Why a call failed, in words for operators, without names of our parts.
    private static func sentence(for error: any Error) -> String {
        switch error {
        case let error as LedgerError: error.message
        case let error as WebhookCallError: error.sentence
        case let error as NIOConnectionError:
            if let refused = (error.dnsAError ?? error.dnsAAAAError) as? WebhookCallError {
                refused.sentence
            } else {
                "No connection was made; see that the receiver listens at the port of the URL."
            }
        case ChannelError.connectTimeout: "No connection was made within 5 seconds."
        case HTTPParserError.invalidEOFState: WebhookCallError.closed.sentence
        case is HTTPParserError: "What it answered is no HTTP."
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            "The TLS handshake failed, or its certificate is not one to trust; see that it is valid for the host."
        default: "The connection broke before an answer came."
        }
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
