/// The certificate a store shows over TLS.
package enum StoreCertificate: String, Sendable, CaseIterable, Codable {
    /// All is as it should be.
    case good
    /// It is another host's.
    case wrongName = "wrong_name"
    /// Its time has passed.
    case expired
    /// An authority signed it that is not the store's own.
    case unknownAuthority = "unknown_authority"
}
