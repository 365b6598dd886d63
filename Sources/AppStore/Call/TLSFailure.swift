import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// The reason a TLS connection failed. Its sentences name no host, because they are stored and shown.
enum TLSFailure: Equatable {
    /// The store's certificate is valid but belongs to another host.
    case wrongName
    /// The certificate could not be verified; the reason is unknown.
    case unverified
    /// A certificate has expired: the store's own, or one above it.
    case expired(since: Date, isStores: Bool)
    case notYetValid(until: Date, isStores: Bool)
    /// No authority trusted here vouches for the certificate.
    case unknownAuthority
    /// The handshake failed before it reached the certificates.
    case noHandshake

    init?(_ error: any Error) {
        if let error = error as? NIOSSLExtraError {
            self = error == .failedToValidateHostname ? .wrongName : .noHandshake
        } else if case .handshakeFailed(.sslError(let stack))? = error as? NIOSSLError {
            // BoringSSL has a code for this; the package exposes it only as text.
            let isUnverified = stack.contains { $0.description.contains("CERTIFICATE_VERIFY_FAILED") }
            self = isUnverified ? .unverified : .noHandshake
        } else if String(reflecting: type(of: error)).contains("SSL") || CallFailure.name(of: error).contains("SSL") {
            self = .noHandshake
        } else {
            return nil
        }
    }

    /// Determines the fault of certificates that failed verification, the server's own first.
    init(in chain: [NIOSSLCertificate], at now: Date) {
        for (place, certificate) in chain.enumerated() {
            let begin = Date(timeIntervalSince1970: TimeInterval(certificate.notValidBefore))
            let end = Date(timeIntervalSince1970: TimeInterval(certificate.notValidAfter))
            if end < now {
                self = .expired(since: end, isStores: place == 0)
                return
            }
            if begin > now {
                self = .notYetValid(until: begin, isStores: place == 0)
                return
            }
        }
        self = .unknownAuthority
    }

    /// The fault and its remedy.
    var sentence: String {
        switch self {
        case .wrongName:
            "The store's certificate is for another name than the configured address has; check the address and what "
                + "answers there."
        case .unverified: "The store's certificate could not be verified; check the root certificates and the clock."
        case .expired(let end, let isStores):
            "\(Self.whose(isStores)) expired on \(end.ISO8601Format()); check the clock, else the store must renew it."
        case .notYetValid(let begin, let isStores):
            "\(Self.whose(isStores)) is not valid before \(begin.ISO8601Format()); check the clock."
        case .unknownAuthority:
            "The store's certificate is signed by an authority that is not trusted here; check the root certificates and "
                + "whether something in between answers in the store's place."
        case .noHandshake:
            "The TLS handshake with the store failed; check that the configured address speaks HTTPS, TLS 1.2 or newer."
        }
    }

    private static func whose(_ isStores: Bool) -> String {
        isStores ? "The store's certificate" : "A certificate above the store's"
    }
}

/// Inspects the certificates of a store that failed verification, because the TLS library does not report their fault.
/// An inspection trusts nothing and sends nothing: it ends the handshake as soon as it has seen the certificates. Its
/// result serves every caller that asks about the same address within a few seconds.
final class CertificateInspection: Sendable {
    static let limit = Duration.seconds(2)
    static let memory = TimeAmount.seconds(10)

    private struct Look {
        let begun: NIODeadline
        let chain: EventLoopFuture<[NIOSSLCertificate]>
    }

    /// The last inspection of each host and port; a process knows only a few.
    private let looks = Mutex<[String: Look]>([:])
    private let group: any EventLoopGroup

    init(on group: any EventLoopGroup) { self.group = group }

    /// Returns the fault of the certificates at `url`; `.unverified` if they cannot be seen.
    func failure(at url: String) async -> TLSFailure {
        guard let parts = URL(string: url), let host = parts.host else { return .unverified }
        do {
            let chain = try await look(at: host, parts.port ?? 443).get()
            return chain.isEmpty ? .unverified : TLSFailure(in: chain, at: Date())
        } catch {
            return .unverified
        }
    }

    private func look(at host: String, _ port: Int) -> EventLoopFuture<[NIOSSLCertificate]> {
        looks.withLock { looks in
            let now = NIODeadline.now()
            if let last = looks["\(host):\(port)"], now < last.begun + Self.memory { return last.chain }
            let look = Look(begun: now, chain: connect(to: host, port))
            looks["\(host):\(port)"] = look
            return look.chain
        }
    }

    private func connect(to host: String, _ port: Int) -> EventLoopFuture<[NIOSSLCertificate]> {
        let loop = group.any()
        let seen = loop.makePromise(of: [NIOSSLCertificate].self)
        guard let bootstrap = ClientBootstrap(validatingGroup: group) else {
            seen.fail(ChannelError.operationUnsupported)
            return seen.futureResult
        }
        let limit = TimeAmount.nanoseconds(Self.limit.wholeNanoseconds)
        let timer = loop.scheduleTask(in: limit) { seen.fail(ChannelError.connectTimeout(limit)) }
        let connection = bootstrap.connectTimeout(limit)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Self.handler(host, seen))
                }
            }
            .connect(host: host, port: port)
        connection.cascadeFailure(to: seen)
        connection.whenSuccess { channel in
            channel.closeFuture.whenComplete { _ in seen.fail(ChannelError.eof) }
            seen.futureResult.whenComplete { _ in channel.close(promise: nil) }
        }
        seen.futureResult.whenComplete { _ in timer.cancel() }
        return seen.futureResult
    }

    /// Returns a handler that reports the certificates it sees and rejects them in every case.
    private static func handler(
        _ host: String, _ seen: EventLoopPromise<[NIOSSLCertificate]>
    ) throws -> NIOSSLClientHandler {
        let context = try NIOSSLContext(configuration: .makeClientConfiguration())
        return try NIOSSLClientHandler(
            context: context, serverHostname: host.isIPAddress ? nil : host,
            customVerificationCallback: { chain, verdict in
                seen.succeed(chain)
                verdict.succeed(.failed)
            })
    }
}

extension String {
    /// Whether the text is an IP address, which gives the server no name by which to choose a certificate.
    fileprivate var isIPAddress: Bool { (try? SocketAddress(ipAddress: self, port: 0)) != nil }
}
