package import Crypto
package import Foundation
import SwiftASN1
import X509

/// What the certificates of a signing authority are like. Anything but the usual is a fault that verifiers must refuse.
package struct ChainTraits: Sendable {
    /// Whether the signer's certificate has Apple's mark for signing App Store texts.
    package var isSignerMarked = true
    /// Whether the issuer's certificate has Apple's mark for issuing such certificates.
    package var isIssuerMarked = true
    /// Whether the signer's certificate says that it may issue others.
    package var isSignerAuthority = false
    /// The validity of the signer's certificate, in days from now.
    package var signerDays = -366.0...800.0

    /// Creates the usual traits.
    package init() {}
}

/// A pretend Apple that signs texts with a chain of three certificates.
package struct SigningAuthority: Sendable {
    private static let signerMark: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 11, 1]
    private static let issuerMark: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 2, 1]
    /// The validity of root and issuer, in days from now.
    private static let authorityDays = -800.0...3_653.0

    /// The certificates in DER form: the signer's, the issuer's, the root's.
    package let certificates: [[UInt8]]
    /// The root's certificate in PEM form.
    package let rootPEM: String
    /// The header of its texts.
    package let header: [UInt8]
    private let encodedHeader: String
    /// The key of the signer.
    private let key: P256.Signing.PrivateKey

    /// Creates new keys and certificates.
    package init(_ traits: ChainTraits = ChainTraits(), at now: Date = Date()) throws {
        let (rootKey, issuerKey) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
        let key = P256.Signing.PrivateKey()
        let root = try Self.certificate(
            "Pretend root", of: rootKey, issuedBy: ("Pretend root", rootKey), Self.authorityDays, at: now,
            extensions: [Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))])
        let issuer = try Self.certificate(
            "Pretend relations", of: issuerKey, issuedBy: ("Pretend root", rootKey), Self.authorityDays, at: now,
            extensions: [Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))]
                + (traits.isIssuerMarked ? [Self.mark(Self.issuerMark)] : []))
        let constraints =
            traits.isSignerAuthority
            ? BasicConstraints.isCertificateAuthority(maxPathLength: nil) : .notCertificateAuthority
        let signer = try Self.certificate(
            "Pretend App Store", of: key, issuedBy: ("Pretend relations", issuerKey), traits.signerDays, at: now,
            extensions: [Critical(constraints)] + (traits.isSignerMarked ? [Self.mark(Self.signerMark)] : []))
        try self.init([signer, issuer, root], key: key)
    }

    init(_ chain: [Certificate], key: P256.Signing.PrivateKey) throws {
        self.key = key
        certificates = try chain.map { certificate in
            var serializer = DER.Serializer()
            try serializer.serialize(certificate)
            return serializer.serializedBytes
        }
        rootPEM = try chain[chain.count - 1].serializeAsPEM().pemString + "\n"
        let texts = certificates.map { "\"\(Data($0).base64EncodedString())\"" }.joined(separator: ",")
        header = Array(#"{"alg":"ES256","x5c":[\#(texts)]}"#.utf8)
        encodedHeader = Self.base64URL(header)
    }

    /// The public key of the signer.
    package var publicKey: P256.Signing.PublicKey { key.publicKey }

    /// The key of the signer in PEM form.
    var keyPEM: String { key.pemRepresentation + "\n" }

    /// Signs a payload: a text in compact form, as the App Store sends it.
    package func sign(_ payload: [UInt8]) throws -> String { try sign(payload, encodedHeader: encodedHeader) }

    /// Signs a payload under another header.
    package func sign(_ payload: [UInt8], header: [UInt8]) throws -> String {
        try sign(payload, encodedHeader: Self.base64URL(header))
    }

    private func sign(_ payload: [UInt8], encodedHeader: String) throws -> String {
        let signed = "\(encodedHeader).\(Self.base64URL(payload))"
        let signature = try key.signature(for: Data(signed.utf8)).rawRepresentation
        return "\(signed).\(Self.base64URL(signature))"
    }

    private static func certificate(
        _ subject: String, of key: P256.Signing.PrivateKey,
        issuedBy issuer: (name: String, key: P256.Signing.PrivateKey),
        _ days: ClosedRange<Double>, at now: Date, extensions: [any CertificateExtensionConvertible]
    ) throws -> Certificate {
        var all = Certificate.Extensions()
        for one in extensions { try all.append(one.makeCertificateExtension()) }
        return try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: now.days(days.lowerBound), notValidAfter: now.days(days.upperBound),
            issuer: try DistinguishedName { CommonName(issuer.name) },
            subject: try DistinguishedName { CommonName(subject) }, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: all, issuerPrivateKey: Certificate.PrivateKey(issuer.key))
    }

    /// Apple's marks have no content but NULL.
    private static func mark(_ oid: ASN1ObjectIdentifier) -> Certificate.Extension {
        Certificate.Extension(oid: oid, critical: false, value: [0x05, 0x00])
    }

    private static func base64URL(_ bytes: some DataProtocol) -> String {
        Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
