package import Crypto
package import Foundation
import SwiftASN1
import Synchronization
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
    private let key: P256.Signing.PrivateKey

    /// Creates new keys and certificates.
    package init(_ traits: ChainTraits = ChainTraits(), at now: Date = Date()) throws {
        let (rootKey, issuerKey) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
        let key = P256.Signing.PrivateKey()
        let authority = BasicConstraints.isCertificateAuthority(maxPathLength: nil)
        let root = try Certificate(
            "Pretend root", for: rootKey.publicKey, issuedBy: ("Pretend root", rootKey), days: Self.authorityDays,
            from: now, extensions: Certificate.Extensions { Critical(authority) })
        let issuer = try Certificate(
            "Pretend relations", for: issuerKey.publicKey, issuedBy: ("Pretend root", rootKey),
            days: Self.authorityDays, from: now,
            extensions: Certificate.Extensions {
                Critical(authority)
                if traits.isIssuerMarked { Self.mark(Self.issuerMark) }
            })
        let signer = try Certificate(
            "Pretend App Store", for: key.publicKey, issuedBy: ("Pretend relations", issuerKey),
            days: traits.signerDays, from: now,
            extensions: Certificate.Extensions {
                Critical(traits.isSignerAuthority ? authority : .notCertificateAuthority)
                if traits.isSignerMarked { Self.mark(Self.signerMark) }
            })
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

    package var publicKey: P256.Signing.PublicKey { key.publicKey }

    var keyPEM: String { key.pemRepresentation + "\n" }

    /// Signs a payload, under the usual header unless another is given. Returns the text in compact form.
    package func sign(_ payload: [UInt8], header: [UInt8]? = nil) throws -> String {
        let signed = "\(header.map { Self.base64URL($0) } ?? encodedHeader).\(Self.base64URL(payload))"
        let signature = try key.signature(for: Data(signed.utf8)).rawRepresentation
        return "\(signed).\(Self.base64URL(signature))"
    }

    /// Apple's marks have no content but NULL.
    private static func mark(_ oid: ASN1ObjectIdentifier) -> Certificate.Extension {
        Certificate.Extension(oid: oid, critical: false, value: [0x05, 0x00])
    }

    private static func base64URL(_ bytes: some DataProtocol) -> String {
        let letters = Data(bytes).base64EncodedData().prefix { $0 != UInt8(ascii: "=") }.map { letter in
            switch letter {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: letter
            }
        }
        return String(decoding: letters, as: UTF8.self)
    }
}

/// The form in which a signing authority is kept, so that a restarted store signs with the same key.
extension SigningAuthority {
    /// An error for a text that is no stored authority.
    package struct Unreadable: Error, Sendable, CustomStringConvertible {
        /// The reason in one sentence.
        package let description: String
    }

    /// The key of the signer and the three certificates, the signer's first, in PEM form.
    package var stored: String {
        let chain = certificates.map { PEMDocument(type: "CERTIFICATE", derBytes: $0).pemString }
        return keyPEM + chain.joined(separator: "\n") + "\n"
    }

    /// Reads what ``stored`` returned; throws ``Unreadable`` for any other text.
    package init(stored text: String) throws {
        guard let blocks = try? PEMDocument.parseMultiple(pemString: text) else {
            throw Unreadable(description: "it is not in PEM form.")
        }
        let chain = blocks.filter { $0.discriminator == "CERTIFICATE" }
        guard chain.count == 3, let block = blocks.first(where: { $0.discriminator == "PRIVATE KEY" }) else {
            throw Unreadable(description: "it does not hold one private key and three certificates.")
        }
        let key = try P256.Signing.PrivateKey(pemRepresentation: block.pemString)
        let certificates = try chain.map { try Certificate(derEncoded: $0.derBytes) }
        guard P256.Signing.PublicKey(certificates[0].publicKey)?.rawRepresentation == key.publicKey.rawRepresentation
        else { throw Unreadable(description: "its key is not that of the first certificate.") }
        try self.init(certificates, key: key)
    }
}

/// What the store signs about one app, and the deliberate mistakes in it.
struct SigningPen: Sendable {
    let authority: SigningAuthority
    /// The app that the texts are about; with a fault another one than asked.
    var bundleID: String
    var altersSignatures = false

    /// Signs a transaction.
    func transaction(_ transaction: SignedTransaction, at moment: StoreTime) throws -> String {
        try text { transaction.write(to: &$0, signedAt: moment, bundleID: bundleID) }
    }

    /// Signs the renewal information of a subscription.
    func renewal(_ renewal: SignedRenewal, at moment: StoreTime) throws -> String {
        try text { renewal.write(to: &$0, signedAt: moment, bundleID: bundleID) }
    }

    /// Signs the claims that `body` writes as one object.
    func text(_ body: (inout JSONWriter) throws -> Void) throws -> String {
        var json = JSONWriter()
        try body(&json)
        let text = try authority.sign(json.bytes)
        guard altersSignatures, let dot = text.lastIndex(of: ".") else { return text }
        let (signed, signature) = (text[...dot], text[dot...].dropFirst())
        return signed + (signature.first == "A" ? "B" : "A") + signature.dropFirst()
    }
}

extension Simulator {
    /// Returns the pen for the store's own app.
    func pen() throws -> SigningPen { SigningPen(authority: try signingAuthority(), bundleID: options.bundleID) }
}

/// The signing authority of a store, made when the first text is signed, so that stores without signed texts start
/// fast.
package final class Signatory: Sendable {
    private let authority: Mutex<SigningAuthority?>

    /// Creates a signatory with an authority that was kept, or one whose authority is made later.
    package init(_ authority: SigningAuthority? = nil) { self.authority = Mutex(authority) }

    /// Returns the authority; a new one has certificates that are valid around `now`.
    func authority(at now: StoreTime) throws -> SigningAuthority {
        try authority.withLock { authority in
            if let authority { return authority }
            let made = try SigningAuthority(at: Date(timeIntervalSince1970: Double(now.milliseconds) / 1000))
            authority = made
            return made
        }
    }
}

extension Simulator {
    /// Returns the authority that signs the store's texts.
    package func signingAuthority() throws -> SigningAuthority { try signatory.authority(at: clock.now) }

    /// Answers the control call for the root of the chain, in PEM form.
    func signingRoot() throws -> SimulatorReply {
        SimulatorReply(
            headers: [("Content-Type", "application/x-pem-file")], body: Array(try signingAuthority().rootPEM.utf8))
    }
}
