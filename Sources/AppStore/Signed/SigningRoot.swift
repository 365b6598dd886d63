import SwiftASN1
import X509

/// The root certificate that signed texts are trusted by, or several of them.
package struct SigningRoot: Sendable {
    let certificate: Certificate
    /// The certificate in DER form.
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

    /// Returns the one of them with these bytes.
    func matching(_ bytes: [UInt8]?) -> SigningRoot? { ([self] + others).first { $0.bytes == bytes } }

    /// Apple Root CA - G3 (https://www.apple.com/certificateauthority), valid until 2039. Its SHA-256 is
    /// 63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179.
    package static let apple: SigningRoot = {
        let bytes = Array(appleRootG3.utf8).withUnsafeBufferPointer(StandardBase64.decoded) ?? []
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
