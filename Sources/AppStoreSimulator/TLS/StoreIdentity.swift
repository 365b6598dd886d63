import Crypto
package import Foundation
import NIOCore
import NIOSSL
import SwiftASN1
import Synchronization
import X509

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

    /// Returns the TLS context in which the store shows a certificate.
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

/// A certificate authority of one process. Its key is new each time and is never stored.
package struct PretendAuthority: Sendable {
    /// The root's validity in days from now: it begins earlier than any certificate of a test needs.
    private static let rootDays = -366.0...3_653.0

    /// The root's certificate in PEM form, for clients that trust it.
    package let rootPEM: String
    private let name: String
    private let key: P256.Signing.PrivateKey
    private let madeAt: Date

    /// Creates a key and a self-signed root.
    package init(at now: Date = Date()) throws {
        let key = P256.Signing.PrivateKey()
        // Several authorities on one machine need different names.
        let name = "Pretend App Store authority \(String(UInt32.random(in: 0 ... .max), radix: 16))"
        let root = try Certificate(
            name, for: key.publicKey, issuedBy: (name, key), days: Self.rootDays, from: now,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true, cRLSign: true))
                SubjectKeyIdentifier(hash: Certificate.PublicKey(key.publicKey))
            })
        rootPEM = try root.serializeAsPEM().pemString + "\n"
        (self.name, self.key, madeAt) = (name, key, now)
    }

    /// Issues a server certificate for host names and IP addresses, with its key.
    ///
    /// - Parameter days: the start and end of its validity, in days from the authority's creation.
    package func issue(for names: [String], days: ClosedRange<Double> = -1...800) throws -> ServerCertificate {
        let leafKey = P256.Signing.PrivateKey()
        let authority = SubjectKeyIdentifier(hash: Certificate.PublicKey(key.publicKey))
        let leaf = try Certificate(
            names.first ?? "nameless", for: leafKey.publicKey, issuedBy: (name, key), days: days, from: madeAt,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                Critical(KeyUsage(digitalSignature: true))
                try ExtendedKeyUsage([.serverAuth])
                SubjectAlternativeNames(names.map(Self.subject))
                SubjectKeyIdentifier(hash: Certificate.PublicKey(leafKey.publicKey))
                AuthorityKeyIdentifier(keyIdentifier: authority.keyIdentifier)
            })
        return ServerCertificate(
            certificatePEM: try leaf.serializeAsPEM().pemString + "\n", keyPEM: leafKey.pemRepresentation + "\n")
    }

    /// Returns the subject of a certificate for a host name or an IP address.
    private static func subject(_ name: String) -> GeneralName {
        guard let address = try? SocketAddress(ipAddress: name, port: 0) else { return .dnsName(name) }
        return .ipAddress(ASN1OctetString(contentBytes: address.ipBytes[...]))
    }
}

/// A server's certificate and its key, both in PEM form.
package struct ServerCertificate: Sendable {
    package let certificatePEM: String
    package let keyPEM: String
}

extension Certificate {
    /// Issues a certificate of the pretend authorities, of TLS and of signed texts, for a key, valid for these days
    /// from an instant.
    init(
        _ subject: String, for key: P256.Signing.PublicKey,
        issuedBy issuer: (name: String, key: P256.Signing.PrivateKey), days: ClosedRange<Double>, from moment: Date,
        extensions: Extensions
    ) throws {
        try self.init(
            version: .v3, serialNumber: SerialNumber(), publicKey: PublicKey(key),
            notValidBefore: moment.days(days.lowerBound), notValidAfter: moment.days(days.upperBound),
            issuer: DistinguishedName { CommonName(issuer.name) }, subject: DistinguishedName { CommonName(subject) },
            signatureAlgorithm: .ecdsaWithSHA256, extensions: extensions, issuerPrivateKey: PrivateKey(issuer.key))
    }
}

extension Date {
    /// Returns the date this many days later, to the second, the precision of a certificate.
    fileprivate func days(_ count: Double) -> Date {
        Date(timeIntervalSince1970: (timeIntervalSince1970 + count * 86_400).rounded())
    }
}

extension SocketAddress {
    /// The address without family, port and flow label, which precede it (RFC 3493, section 3.3).
    fileprivate var ipBytes: [UInt8] {
        withSockAddr { address, size in
            let bytes = UnsafeRawBufferPointer(start: address, count: size)
            return switch self {
            case .v4: Array(bytes[4..<8])
            case .v6: Array(bytes[8..<24])
            case .unixDomainSocket: []
            }
        }
    }
}
