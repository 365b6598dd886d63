import Crypto
package import Subscriptions

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

/// An answer equal to the last one about its receipt, at a later clock.
struct EqualAnswer: Sendable {
    let claim: Claim
    /// The fingerprint of both answers.
    let fingerprint: Fingerprint
    /// Apple's clock.
    let asOf: Instant

    /// Creates an answer equal to the last one; nil when it differs, or when it ends a row of fruitless calls.
    ///
    /// After such a row the receipt may take over what others poll, which only a full settlement decides.
    init?(to claim: Claim, fingerprint: Fingerprint, asOf: Instant) {
        guard claim.fingerprint == fingerprint, claim.attempts <= SettlementRun.fruitlessAttemptsMax else { return nil }
        self.claim = claim
        self.fingerprint = fingerprint
        self.asOf = asOf
    }
}
