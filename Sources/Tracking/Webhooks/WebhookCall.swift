import AppStore
import Crypto
import Foundation
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
                return .failed(WebhookFailure(reason: Self.sentence(for: error)))
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
                    reason: "It answered \(answer.status), a redirect, and none is followed; set its final URL."))
        default:
            .failed(
                WebhookFailure(
                    status: answer.status, reason: "It answered \(answer.status).",
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

/// Where a webhook sends: an address that was looked at, so that no disguise leads it to a machine it must not reach.
package struct WebhookAddress: Sendable, Hashable {
    /// The most characters of a URL.
    static let charactersMax = 2_000

    /// The URL as it was given.
    package let url: String
    /// The host, without brackets.
    package let host: String
    /// Whether it is `https`.
    package let isSecure: Bool
    package let port: Int
    /// What a request asks for: the path with the query.
    package let target: String
    /// The host and the port, as a request names them.
    package let authority: String

    /// Reads a URL; throws `invalid`, with what to do, for one that webhooks may not have.
    ///
    /// A name is not looked up here, because it may mean another machine at the next look: every connection is judged by
    /// ``IPAddress/refusal(secure:)``.
    package init(_ url: String) throws(LedgerError) {
        func refuse(_ why: String) -> LedgerError { LedgerError(.invalid, "The URL \(why)") }
        guard (1...Self.charactersMax).contains(url.utf8.count), url.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw refuse("has 1 to \(Self.charactersMax) characters, all of them ASCII without blanks.")
        }
        guard !url.contains("\\"), let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(),
            ["http", "https"].contains(scheme)
        else { throw refuse("begins with https://, or with http:// for a private address.") }
        guard parts.user == nil, parts.password == nil, !url.contains("@") else {
            throw refuse("holds no user and no password; the receiver knows the sender by the signature.")
        }
        guard parts.fragment == nil, !url.contains("#") else { throw refuse("has no fragment.") }
        if let port = parts.port, !(1...65_535).contains(port) { throw refuse("has a port from 1 to 65535.") }
        var host = parts.host ?? ""
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        guard !host.isEmpty, !host.contains("%") else { throw refuse("names a host.") }
        self.url = url
        self.host = host
        isSecure = scheme == "https"
        port = parts.port ?? (isSecure ? 443 : 80)
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        target = path + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
        authority = (host.contains(":") ? "[\(host)]" : host) + (parts.port.map { ":\($0)" } ?? "")
        if let address = IPAddress(host) {
            if let refusal = address.refusal(secure: isSecure) { throw refuse(refusal) }
        } else if host.isNumeric {
            throw refuse("writes an address in an unusual form; write it as four decimal numbers.")
        }
    }
}

/// An IPv4 or IPv6 address.
package struct IPAddress: Sendable, Hashable {
    /// 4 or 16 bytes in network order.
    private let bytes: [UInt8]

    /// Reads an address in its usual form; nil for a name.
    package init?(_ text: String) {
        let text = String(text.prefix { $0 != "%" })
        var four = [UInt8](repeating: 0, count: 4)
        var sixteen = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &four) == 1 {
            bytes = four
        } else if inet_pton(AF_INET6, text, &sixteen) == 1 {
            bytes = sixteen
        } else {
            return nil
        }
    }

    private init(bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    /// Why a webhook may not connect to it, as the end of a sentence about the URL; nil where it may.
    package func refusal(secure: Bool) -> String? {
        switch reach {
        case .never:
            "leads to an address that no webhook may reach: link-local, multicast, unspecified or a cloud's metadata."
        case .outside where !secure: "leads out of the private network, so it has to begin with https://."
        case .outside, .inside: nil
        }
    }

    private enum Reach { case never, inside, outside }

    private var reach: Reach {
        if bytes.count == 4 { return reachOfFour(bytes[0], bytes[1], bytes[2], bytes[3]) }
        if let four = carriedFour { return four.reach }
        // The services of AWS and of Google Cloud about the machine that asks.
        if bytes.starts(with: [0xFD, 0x00, 0x0E, 0xC2]) || bytes.starts(with: [0xFD, 0x20, 0x00, 0xCE]) {
            return .never
        }
        if bytes.dropLast().allSatisfy({ $0 == 0 }) { return bytes[15] == 1 ? .inside : .never }
        // Local NAT64 and Teredo hide an IPv4 address.
        if bytes.starts(with: [0x00, 0x64, 0xFF, 0x9B]) || bytes.starts(with: [0x20, 0x01, 0, 0]) { return .never }
        if bytes[0] == 0xFF || bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80 { return .never }
        let isPrivate = bytes[0] & 0xFE == 0xFC || bytes[0] == 0xFE && bytes[1] & 0xC0 == 0xC0
        return isPrivate ? .inside : .outside
    }

    private func reachOfFour(_ one: UInt8, _ two: UInt8, _ three: UInt8, _ four: UInt8) -> Reach {
        switch (one, two, three, four) {
        // The services of Azure, Alibaba and Oracle about the machine that asks, and what is no machine's address.
        case (168, 63, 129, 16), (100, 100, 100, 200), (192, 0, 0, _), (0, _, _, _), (169, 254, _, _),
            (224..., _, _, _):
            .never
        case (10, _, _, _), (127, _, _, _), (172, 16...31, _, _), (192, 168, _, _), (100, 64...127, _, _): .inside
        default: .outside
        }
    }

    /// The IPv4 address that an IPv6 address carries: mapped, translated (SIIT, NAT64), compatible, 6to4 or ISATAP.
    private var carriedFour: IPAddress? {
        let isEmpty = bytes.prefix(8).allSatisfy { $0 == 0 }
        let middle = Array(bytes[8..<12])
        let isCarried =
            isEmpty && [[0, 0, 0xFF, 0xFF], [0xFF, 0xFF, 0, 0]].contains(middle)
            || isEmpty && middle == [0, 0, 0, 0] && bytes[12] != 0
            || bytes.starts(with: [0x00, 0x64, 0xFF, 0x9B, 0, 0])
            || [[0, 0, 0x5E, 0xFE], [2, 0, 0x5E, 0xFE]].contains(middle)
        if isCarried { return IPAddress(bytes: bytes[12...]) }
        return bytes.starts(with: [0x20, 0x02]) ? IPAddress(bytes: bytes[2..<6]) : nil
    }
}

extension String {
    /// Whether a resolver would read it as an address in a form such as `127.1`, `2130706433` or `0x7f000001`.
    fileprivate var isNumeric: Bool {
        guard let last = split(separator: ".").last else { return true }
        return last.allSatisfy(\.isWholeNumber) || last.lowercased().hasPrefix("0x") || contains(":")
    }
}
