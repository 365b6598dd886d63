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
    case failed(WebhookFailure)

    /// Why it is not delivered; nil where it is.
    package var failure: WebhookFailure? {
        switch self {
        case .delivered: nil
        case .gone: WebhookFailure(status: 410, reason: "Its receiver answered 410: it wants no more.")
        case .failed(let failure): failure
        }
    }

    package var sentence: String { failure?.reason ?? "Its receiver answered 2xx." }
}

/// What is sent to a receiver in one call.
package struct WebhookCall: Sendable {
    package let url: String
    package let id: String
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
    /// The longest time of a call, in seconds, which ``WebhookCallError`` says too.
    package static let callSecondsMax = 15.0

    /// Makes a call; never throws.
    package let send: @Sendable (WebhookCall) async -> WebhookOutcome

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
                    "host": address.authority, "content-length": "\(call.body.count)",
                ]
                return Self.outcome(
                    of: try await connections.post(
                        call.body, headers, to: address, within: .nanoseconds(Int64(callSeconds * 1e9))))
            } catch { return .failed(WebhookFailure(reason: Self.sentence(for: error))) }
        }
    }

    private static func outcome(of answer: WebhookAnswer) -> WebhookOutcome {
        var failure = WebhookFailure(status: answer.status, reason: "It answered \(answer.status).")
        switch answer.status {
        case 200..<300: return .delivered
        case 410: return .gone
        case 300..<400:
            failure.reason = "It answered \(answer.status), a redirect, and none is followed; set its final URL."
        default:
            failure.retryAfterSeconds = answer.headers.flatMap { RetryAfter.seconds(in: $0, now: Date()) }
                .map { min($0, 86_400) }
        }
        return .failed(failure)
    }

    /// Why a call failed, in words for operators, without names of our parts.
    private static func sentence(for error: any Error) -> String {
        switch error {
        case let error as LedgerError: error.message
        case let error as WebhookCallError: error.rawValue
        case let error as NIOConnectionError:
            (error.dnsAError ?? error.dnsAAAAError).map(sentence(for:))
                ?? "No connection was made; see that the receiver listens at the port of the URL."
        case ChannelError.connectTimeout: "No connection was made within 5 seconds."
        case HTTPParserError.invalidEOFState: WebhookCallError.closed.rawValue
        case is HTTPParserError: "What it answered is no HTTP."
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            "The TLS handshake failed, or its certificate is not one to trust; see that the port speaks TLS, and that the "
                + "certificate is valid today and for the host, and signed by an authority that this machine knows."
        default: "The connection broke before an answer came."
        }
    }
}

extension Tracker {
    /// Sends a message of the type `webhook.test`; returns what came back. Throws `notFound` for an unknown webhook.
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
    static let charactersMax = 2_000

    package let url: String
    /// The host, without brackets.
    package let host: String
    package let isSecure: Bool
    package let port: Int
    /// What a request asks for: the path with the query.
    package let target: String
    /// The host and the port, as a request names them.
    package let authority: String

    /// What connections are kept by.
    var place: String { "\(isSecure) \(authority)" }

    static func refused(_ why: String) -> LedgerError { LedgerError(.invalid, "The URL \(why)") }

    /// Reads a URL; throws `invalid`, with what to do, for one that webhooks may not have. A name is not looked up
    /// here: it may mean another machine at the next look, so ``IPAddress/refusal(secure:)`` judges every connection.
    package init(_ url: String) throws(LedgerError) {
        guard (1...Self.charactersMax).contains(url.utf8.count), url.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw Self.refused("has 1 to \(Self.charactersMax) characters, all of them ASCII without blanks.") }
        guard !url.contains("\\"), let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(),
            ["http", "https"].contains(scheme)
        else { throw Self.refused("begins with https://, or with http:// for a private address.") }
        guard parts.user == nil, parts.password == nil, !url.contains("@") else {
            throw Self.refused("holds no user and no password; the receiver knows the sender by the signature.")
        }
        guard parts.fragment == nil, !url.contains("#") else { throw Self.refused("has no fragment.") }
        if let port = parts.port, !(1...65_535).contains(port) { throw Self.refused("has a port from 1 to 65535.") }
        var host = parts.host ?? ""
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        guard !host.isEmpty, !host.contains("%") else { throw Self.refused("names a host.") }
        self.url = url
        self.host = host
        isSecure = scheme == "https"
        port = parts.port ?? (isSecure ? 443 : 80)
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        target = path + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
        authority = (host.contains(":") ? "[\(host)]" : host) + (parts.port.map { ":\($0)" } ?? "")
        if let address = IPAddress(host) {
            if let refusal = address.refusal(secure: isSecure) { throw Self.refused(refusal) }
        } else if host.isNumeric {
            throw Self.refused("writes an address in an unusual form; write it as four decimal numbers.")
        }
    }
}

extension IPAddress {
    /// What is no machine's address, link-local and multicast addresses, local NAT64 and Teredo, which hide another address, and
    /// the services of AWS, Google Cloud, Azure, Alibaba and Oracle about the machine that asks.
    private static let never = networks(
        "0.0.0.0/8 169.254.0.0/16 192.0.0.0/24 224.0.0.0/3 168.63.129.16 100.100.100.200 "
            + "fe80::/10 ff00::/8 64:ff9b::/32 2001::/32 fd00:ec2::/32 fd20:ce::/32")
    /// Private networks and this machine.
    private static let inside = networks(
        "10.0.0.0/8 127.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 ::1 fc00::/7 fec0::/10")
    /// What ends with an IPv4 address: compatible or translated (SIIT, NAT64).
    private static let carrying = networks("::/96 ::ffff:0:0:0/96 64:ff9b::/48")
    private static let sixToFour = networks("2002::/16")

    private static func networks(_ list: String) -> [IPNetwork] {
        list.split(separator: " ").compactMap { IPNetwork(String($0)) }
    }

    private func isIn(_ networks: [IPNetwork]) -> Bool { networks.contains { $0.contains(self) } }

    /// Why a webhook may not connect to it, as the end of a sentence about the URL; nil where it may.
    package func refusal(secure: Bool) -> String? {
        if let four = carriedFour { return four.refusal(secure: secure) }
        if isIn(Self.never) {
            return
                "leads to an address that no webhook may reach: link-local, multicast, unspecified or a cloud's metadata."
        }
        return secure || isIn(Self.inside)
            ? nil : "leads out of the private network, so it has to begin with https://."
    }

    /// The IPv4 address that an IPv6 address carries: mapped, translated, compatible, 6to4 or ISATAP.
    private var carriedFour: IPAddress? {
        guard bytes.count == 16, self != IPAddress("::1") else { return nil }
        let isISATAP = [[0, 0, 0x5E, 0xFE], [2, 0, 0x5E, 0xFE]].contains(Array(bytes[8..<12]))
        if isISATAP || isIn(Self.carrying) || unmapped != self { return IPAddress(bytes: bytes[12...]) }
        return isIn(Self.sixToFour) ? IPAddress(bytes: bytes[2..<6]) : nil
    }
}

extension String {
    /// Whether a resolver would read it as an address in a form such as `127.1`, `2130706433` or `0x7f000001`.
    fileprivate var isNumeric: Bool {
        guard let last = split(separator: ".").last else { return true }
        return last.allSatisfy(\.isWholeNumber) || last.lowercased().hasPrefix("0x") || contains(":")
    }
}
