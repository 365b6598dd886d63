import Crypto
import Subscriptions

/// The identity of an answer: all that Apple said except its clocks, and the rules by which we read it.
///
/// An answer with the fingerprint of the last one changes only clocks, unless time itself changes something.
package struct Fingerprint: Hashable, Sendable {
    let bytes: [UInt8]

    /// Creates the fingerprint of an answer's lasting parts under the rules of an app.
    package init(of body: [UInt8], lasting parts: [Range<Int>], app: App, environment: StoreEnvironment) {
        let policy = app.policy(for: environment)
        let rules = [
            Int64(Rules.edition), policy.leeway.milliseconds, policy.outageAllowance.milliseconds,
            policy.lateRenewalTolerance.milliseconds, Int64(policy.speedup),
        ]
        var hash = SHA256()
        rules.withUnsafeBytes { hash.update(bufferPointer: $0) }
        body.withUnsafeBytes { bytes in
            for part in parts { hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: bytes[part])) }
        }
        bytes = Array(hash.finalize().prefix(16))
    }

    init(stored bytes: [UInt8]) {
        self.bytes = bytes
    }
}
