import Crypto
import Foundation
@_spi(FixedExpiryValidationTime) import X509
import SwiftASN1

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
    /// noticed.
    ///
    /// The validity is not compared with any clock: each text compares it with its own date.
    init(_ header: SignedHeader, trusting roots: SigningRoot) async throws(SignedTextRefusal) {
        guard let root = roots.matching(header.certificates.last) else { throw .otherRoot }
        let (signer, issuer) = try Self.read(header)
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

    private static func read(
        _ header: SignedHeader
    ) throws(SignedTextRefusal) -> (signer: Certificate, issuer: Certificate) {
        do {
            return (
                try Certificate(derEncoded: header.certificates[0]), try Certificate(derEncoded: header.certificates[1])
            )
        } catch {
            throw .unreadableCertificate
        }
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
