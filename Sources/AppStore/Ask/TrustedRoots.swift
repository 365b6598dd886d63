import NIOSSL

/// Certificates of authorities, for a store whose certificate the system's authorities do not vouch for.
package struct TrustedRoots: Sendable {
    /// Why a text is no list of certificates.
    package struct Unreadable: Error, Sendable, CustomStringConvertible {
        /// One sentence.
        package let description: String
    }

    let certificates: [NIOSSLCertificate]

    /// Reads certificates in PEM form, one at least.
    package init(pem: String) throws(Unreadable) {
        let nothing = Unreadable(description: "it holds no certificate in PEM form (-----BEGIN CERTIFICATE-----).")
        do {
            certificates = try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8))
        } catch {
            throw nothing
        }
        if certificates.isEmpty { throw nothing }
    }
}
