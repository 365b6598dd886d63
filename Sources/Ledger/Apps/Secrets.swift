import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions
import Synchronization

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

    /// Returns a keyed hash of a text, the same for the same `owner`. Without the master key it says nothing about the
    /// text.
    func hash(_ text: String, of owner: String) throws -> [UInt8] {
        let code = HMAC<SHA256>.authenticationCode(for: Data("\(owner): \(text)".utf8), using: key)
        return Array(code)
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

/// A cache of the apps' opened secrets, which every call to Apple needs. An entry is valid until the sealed secrets
/// change.
final class OpenedSecrets: Sendable {
    private struct Opened {
        let sealed: [[UInt8]?]
        let secrets: AppSecrets
    }

    private let byApp = Mutex<[BundleID: Opened]>([:])

    /// Returns the secrets of an app; opens them only if they are not cached.
    ///
    /// A previous secret that does not open is none: after the loss of a master key and a rotation it is sealed with the
    /// lost key.
    func secrets(of app: App, open: ([UInt8]?) throws -> String?) throws -> AppSecrets {
        let sealed = [app.sealedSecret, app.sealedPreviousSecret]
        if let known = byApp.withLock({ $0[app.bundleID] }), known.sealed == sealed { return known.secrets }
        let current = try open(app.sealedSecret)
        let previous: String?
        do {
            previous = try open(app.sealedPreviousSecret)
        } catch let error as LedgerError where error.kind == .mismatch {
            previous = nil
        }
        let secrets = AppSecrets(current: current, previous: previous)
        byApp.withLock { $0[app.bundleID] = Opened(sealed: sealed, secrets: secrets) }
        return secrets
    }
}

/// A receipt that reveals, by Apple's answer, whether an app's shared secret is right.
package struct ProbeReceipt: Sendable {
    /// The receipt.
    package let receiptID: ReceiptID
    /// The environment in which Apple verified it.
    package let environment: StoreEnvironment?
    /// The bytes to send to Apple.
    package let receipt: [UInt8]
}

extension LedgerApps {
    /// Returns receipts to test an app's shared secret with, at most `limit`: verified receipts that contain
    /// subscriptions, since Apple checks the secret only for those; of one environment where one is given.
    package func tellingReceipts(
        of app: App, in environment: StoreEnvironment? = nil, limit: Int
    ) async throws -> [ProbeReceipt] {
        let rows = try await query(
            Queries.findProbeReceipts,
            [.int4(app.id), .int4(Int32(clamping: limit)), .text(environment?.rawValue)])
        return try rows.map { row in
            ProbeReceipt(
                receiptID: ReceiptID(try row.int8("receipt_id")), environment: try row.wordIfPresent("environment"),
                receipt: try row.bytea("data"))
        }
    }
}
