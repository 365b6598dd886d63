import NIOSSL

/// Root certificates, for a store whose certificate the system's authorities do not vouch for.
package struct TrustedRoots: Sendable {
    /// The error for a text that is not a list of certificates.
    package struct Unreadable: Error, Sendable, CustomStringConvertible {
        /// The reason in one sentence.
        package let description: String
    }

    let certificates: [NIOSSLCertificate]
    /// The certificates in PEM form.
    let pem: String

    /// Reads certificates in PEM form, at least one; throws ``Unreadable`` otherwise.
    package init(pem: String) throws(Unreadable) {
        let nothing = Unreadable(description: "it holds no certificate in PEM form (-----BEGIN CERTIFICATE-----).")
        do {
            certificates = try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8))
        } catch {
            throw nothing
        }
        if certificates.isEmpty { throw nothing }
        self.pem = pem
    }
}
