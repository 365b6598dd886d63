import Crypto
import Foundation
import SwiftASN1
import Synchronization
@_spi(FixedExpiryValidationTime) import X509

/// A chain of certificates that was verified once: whose key signs, and when it may.
package struct SignerChain: Sendable {
    /// Apple's mark of a certificate that signs App Store texts.
    private static let signerMark: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 11, 1]
    /// Apple's mark of a certificate that issues such certificates.
    private static let issuerMark: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 2, 1]

    /// The subjects of the certificates, the signer's first.
    package let subjects: [String]
    /// The milliseconds since 1970 in which all certificates are valid.
    package let validity: ClosedRange<Int64>
    let key: P256.Signing.PublicKey

    /// Verifies the certificates of a header against a root. Nothing is fetched: a chain that Apple revoked is not
    /// noticed. The validity is not compared with any clock: each text compares it with its own date.
    init(_ certificates: [[UInt8]], trusting roots: SigningRoot) async throws(SignedTextRefusal) {
        guard let root = roots.matching(certificates.last) else { throw .otherRoot }
        guard let signer = try? Certificate(derEncoded: certificates[0]),
            let issuer = try? Certificate(derEncoded: certificates[1])
        else { throw .unreadableCertificate }
        guard let range = Self.validity(of: [signer, issuer, root.certificate]) else { throw .outsideValidity }
        let moment = Date(timeIntervalSince1970: Double(range.lowerBound) / 1_000)
        var verifier = Verifier(rootCertificates: CertificateStore([root.certificate])) {
            RFC5280Policy(fixedExpiryValidationTime: moment)
        }
        let result = await verifier.validate(leaf: signer, intermediates: CertificateStore([issuer]))
        guard case .validCertificate(let chain) = result, Array(chain) == [signer, issuer, root.certificate] else {
            throw .untrustedChain
        }
        guard signer.extensions[oid: Self.signerMark] != nil, issuer.extensions[oid: Self.issuerMark] != nil,
            Self.isNoAuthority(signer)
        else { throw .otherPurpose }
        guard let key = P256.Signing.PublicKey(signer.publicKey) else { throw .unreadableCertificate }
        self.key = key
        validity = range
        subjects = [signer, issuer, root.certificate].map(\.subject.description)
    }

    private static func isNoAuthority(_ certificate: Certificate) -> Bool {
        switch try? certificate.extensions.basicConstraints {
        case .isCertificateAuthority: false
        case .notCertificateAuthority, nil: true
        }
    }

    private static func validity(of certificates: [Certificate]) -> ClosedRange<Int64>? {
        let begins = certificates.map { $0.notValidBefore.timeIntervalSince1970 * 1_000 }.max() ?? 0
        let ends = certificates.map { $0.notValidAfter.timeIntervalSince1970 * 1_000 }.min() ?? 0
        return begins <= ends ? Int64(begins)...Int64(ends) : nil
    }
}

/// The root certificate that signed texts are trusted by, or several of them.
package struct SigningRoot: Sendable {
    let certificate: Certificate
    let bytes: [UInt8]
    /// Further certificates: the file of a pretend App Store also holds the root of its TLS certificate.
    private var others: [SigningRoot] = []

    /// Reads a certificate in DER form; throws what the parser throws.
    package init(der bytes: [UInt8]) throws {
        certificate = try Certificate(derEncoded: bytes)
        self.bytes = bytes
    }

    /// The certificates of a pretend App Store; throws what the parser throws.
    package init(_ roots: TrustedRoots) throws {
        let all = try PEMDocument.parseMultiple(pemString: roots.pem).map(\.derBytes)
        try self.init(der: all.first ?? [])
        others = try all.dropFirst().map { try SigningRoot(der: $0) }
    }

    func matching(_ bytes: [UInt8]?) -> SigningRoot? { ([self] + others).first { $0.bytes == bytes } }

    /// Apple Root CA - G3 (https://www.apple.com/certificateauthority), valid until 2039. Its SHA-256 is
    /// 63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179.
    package static let apple: SigningRoot = {
        let bytes = StandardBase64.decoded(appleRootG3.utf8) ?? []
        do {
            return try SigningRoot(der: bytes)
        } catch {
            preconditionFailure("The compiled-in root certificate cannot be read: \(error)")
        }
    }()

    private static let appleRootG3 = """
        MIICQzCCAcmgAwIBAgIILcX8iNLFS5UwCgYIKoZIzj0EAwMwZzEbMBkGA1UEAwwSQXBwbGUgUm9vdCBDQSAtIEczMSYwJAYDVQQLDB1B\
        cHBsZSBDZXJ0aWZpY2F0aW9uIEF1dGhvcml0eTETMBEGA1UECgwKQXBwbGUgSW5jLjELMAkGA1UEBhMCVVMwHhcNMTQwNDMwMTgxOTA2\
        WhcNMzkwNDMwMTgxOTA2WjBnMRswGQYDVQQDDBJBcHBsZSBSb290IENBIC0gRzMxJjAkBgNVBAsMHUFwcGxlIENlcnRpZmljYXRpb24g\
        QXV0aG9yaXR5MRMwEQYDVQQKDApBcHBsZSBJbmMuMQswCQYDVQQGEwJVUzB2MBAGByqGSM49AgEGBSuBBAAiA2IABJjpLz1AcqTtkyJy\
        gRMc3RCV8cWjTnHcFBbZDuWmBSp3ZHtfTjjTuxxEtX/1H7YyYl3J6YRbTzBPEVoA/VhYDKX1DyxNB0cTddqXl5dvMVztK517IDvYuVTZ\
        XpmkOlEKMaNCMEAwHQYDVR0OBBYEFLuw3qFYM4iapIqZ3r6966/ayySrMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgEGMAoG\
        CCqGSM49BAMDA2gAMGUCMQCD6cHEFl4aXTQY2e3v9GwOAEZLuN+yRhHFD/3meoyhpmvOwgPUnPWTxnS4at+qIxUCMG1mihDK1A3UT82N\
        Qz60imOlM27jbdoXt2QfyFMm+YhidDkLF1vLUagM6BgD56KyKA==
        """
}

/// A bounded memory of verified chains by their headers. Apple signs with a few keys at a time: most texts find theirs.
final class VerifiedChains: Sendable {
    /// The verification of one chain, for every text that waits for it.
    typealias Verification = Task<Result<SignerChain, SignedTextRefusal>, Never>

    static let chainsMax = 64

    private struct Memory {
        var chains: [[UInt8]: SignerChain] = [:]
        /// The headers, the least recently used first.
        var order: [[UInt8]] = []
        var underWay: [[UInt8]: Verification] = [:]
    }

    private let memory = Mutex(Memory())

    func chain(of header: ArraySlice<UInt8>) -> SignerChain? {
        let header = Array(header)
        return memory.withLock { memory in
            guard let chain = memory.chains[header] else { return nil }
            if memory.order.last != header, let place = memory.order.firstIndex(of: header) {
                memory.order.remove(at: place)
                memory.order.append(header)
            }
            return chain
        }
    }

    /// Returns the verification of a header's chain that is under way, or begins one; nil where `admits` forbids that.
    func verification(
        of header: ArraySlice<UInt8>, admits: () -> Bool,
        verify: @escaping @Sendable () async -> Result<SignerChain, SignedTextRefusal>
    ) -> Verification? {
        let header = Array(header)
        return memory.withLock { memory in
            // Another text may have brought it since this one looked.
            if let chain = memory.chains[header] { return Verification { .success(chain) } }
            if let verification = memory.underWay[header] { return verification }
            guard admits() else { return nil }
            let verification = Verification { await verify() }
            memory.underWay[header] = verification
            return verification
        }
    }

    /// Ends the wait for a verification: its chain is remembered now, or the next text begins another one.
    func endVerification(of header: ArraySlice<UInt8>) { memory.withLock { $0.underWay[Array(header)] = nil } }

    /// Remembers a chain; the least recently used one makes room.
    func remember(_ chain: SignerChain, of header: ArraySlice<UInt8>) {
        let header = Array(header)
        memory.withLock { memory in
            if memory.chains.updateValue(chain, forKey: header) != nil { return }
            memory.order.append(header)
            if memory.order.count > Self.chainsMax { memory.chains[memory.order.removeFirst()] = nil }
        }
    }

    var count: Int { memory.withLock(\.chains.count) }
}
