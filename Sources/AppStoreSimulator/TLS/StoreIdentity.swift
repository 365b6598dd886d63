import NIOSSL
import Synchronization

/// The certificate a store shows over TLS.
package enum StoreCertificate: String, Sendable, CaseIterable, Codable {
    /// A correct certificate.
    case good
    /// The certificate of another host.
    case wrongName = "wrong_name"
    /// A certificate past its end.
    case expired
    /// A certificate of an authority other than the store's own.
    case unknownAuthority = "unknown_authority"
}

/// The TLS identity of a store that uses HTTPS: good and bad certificates of its own authority.
package final class StoreIdentity: Sendable {
    /// The names of a store that listens on this machine only.
    package static let localNames = ["localhost", "127.0.0.1", "::1"]

    /// The certificate of the store's authority in PEM form, for clients that trust it.
    package let rootPEM: String
    private let good, wrongName, expired, unknownAuthority: NIOSSLContext
    private let shown: Mutex<StoreCertificate>

    /// Creates an authority and its certificates for `names`, host names or IP addresses.
    package init(names: [String] = localNames, shows certificate: StoreCertificate = .good) throws {
        let authority = try PretendAuthority()
        rootPEM = authority.rootPEM
        good = try Self.context(authority.issue(for: names))
        wrongName = try Self.context(authority.issue(for: ["another-store.example"]))
        expired = try Self.context(authority.issue(for: names, days: -31 ... -1))
        unknownAuthority = try Self.context(PretendAuthority().issue(for: names))
        shown = Mutex(certificate)
    }

    /// The certificate for new connections.
    package var certificate: StoreCertificate { shown.withLock { $0 } }

    /// Shows another certificate from now on; open connections stay.
    package func show(_ certificate: StoreCertificate) { shown.withLock { $0 = certificate } }

    /// The TLS context of the next connection.
    var context: NIOSSLContext {
        switch certificate {
        case .good: good
        case .wrongName: wrongName
        case .expired: expired
        case .unknownAuthority: unknownAuthority
        }
    }

    private static func context(_ certificate: ServerCertificate) throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMBytes(Array(certificate.certificatePEM.utf8))
        let key = try NIOSSLPrivateKey(bytes: Array(certificate.keyPEM.utf8), format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        // The same as Apple's servers.
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        return try NIOSSLContext(configuration: configuration)
    }
}
