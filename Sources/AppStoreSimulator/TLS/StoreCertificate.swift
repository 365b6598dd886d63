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
