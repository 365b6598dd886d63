import Crypto
import Foundation

/// A seal for secrets at rest: the operator's master key (ChaCha20-Poly1305). Each secret is bound to its owner.
package struct SecretSeal: Sendable {
    private let key: SymmetricKey

    /// Creates a seal from a master key of exactly 32 bytes; throws `invalid` for any other length.
    package init(masterKey: [UInt8]) throws(LedgerError) {
        guard masterKey.count == 32 else {
            throw LedgerError(.invalid, "The master key has \(masterKey.count) bytes; give 32 bytes in base64.")
        }
        key = SymmetricKey(data: masterKey)
    }

    /// Returns the sealed form of `secret`, which opens only for the same `owner`.
    package func seal(_ secret: String, for owner: String) throws -> [UInt8] {
        let box = try ChaChaPoly.seal(Data(secret.utf8), using: key, authenticating: Data(owner.utf8))
        return [UInt8](box.combined)
    }

    /// Returns the secret that was sealed for `owner`.
    ///
    /// Throws `mismatch` when the master key is a different one or the sealed bytes were changed.
    package func open(_ sealed: [UInt8], for owner: String) throws(LedgerError) -> String {
        do {
            let box = try ChaChaPoly.SealedBox(combined: sealed)
            let secret = try ChaChaPoly.open(box, using: key, authenticating: Data(owner.utf8))
            return String(decoding: secret, as: UTF8.self)
        } catch {
            throw LedgerError(
                .mismatch,
                "The stored secret of \(owner) does not open with this master key; "
                    + "set the PERENNIAL_MASTER_KEY it was sealed with, or rotate the secret.")
        }
    }
}
