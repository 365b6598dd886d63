import Crypto
package import Subscriptions

/// The identity of an answer: all that Apple said except its clocks, and the rules by which we read it.
///
/// An answer with the fingerprint of the last one changes only clocks, unless time itself changes something.
package struct Fingerprint: Hashable, Sendable {
    let bytes: [UInt8]

    /// Creates the fingerprint of an answer's lasting parts under the rules of an app.
    package init(of body: [UInt8], lasting parts: [Range<Int>], app: App, environment: StoreEnvironment) {
        var hash = Self.hash(ofRules: app.policy(for: environment))
        body.withUnsafeBytes { bytes in
            for part in parts { hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: bytes[part])) }
        }
        bytes = Array(hash.finalize().prefix(16))
    }

    /// Creates the fingerprint of what an answer means under the rules of an app, in whatever order and form it says it.
    init(of evidence: Evidence, app: App) {
        var hash = Self.hash(ofRules: app.policy(for: evidence.environment))
        hash.update(data: Meaning(of: .verified(evidence)).digest)
        withUnsafeBytes(of: evidence.receiptCreatedAt?.milliseconds ?? .min) { hash.update(bufferPointer: $0) }
        bytes = Array(hash.finalize().prefix(16))
    }

    init(stored bytes: [UInt8]) {
        self.bytes = bytes
    }

    private static func hash(ofRules policy: Policy) -> SHA256 {
        let rules = [
            Int64(Rules.edition), policy.leeway.milliseconds, policy.outageAllowance.milliseconds,
            policy.lateRenewalTolerance.milliseconds, Int64(policy.speedup),
        ]
        var hash = SHA256()
        rules.withUnsafeBytes { hash.update(bufferPointer: $0) }
        return hash
    }
}

/// An answer equal to the last one about its receipt, at a later clock.
struct EqualAnswer: Sendable {
    let claim: Claim
    /// The fingerprint of the last answer.
    let last: Fingerprint
    /// The fingerprint of this one, which is another one if it says the same in other bytes.
    let fingerprint: Fingerprint
    /// Apple's clock.
    let asOf: Instant
    /// Where the next read of the Server API's history begins; nil: as before.
    let revision: String?

    /// Creates an answer equal to the last one; nil when its bytes differ, or when it ends a row of fruitless calls.
    ///
    /// After such a row the receipt may take over what others poll, which only a full settlement decides.
    init?(to claim: Claim, fingerprint: Fingerprint, asOf: Instant) {
        guard claim.fingerprint == fingerprint, claim.attempts <= SettlementRun.fruitlessAttemptsMax else { return nil }
        self.claim = claim
        (last, self.fingerprint) = (fingerprint, fingerprint)
        (self.asOf, revision) = (asOf, nil)
    }

    /// Creates an answer that says in other bytes what the last one said; nil when it says something else.
    init?(_ settlement: Settlement) {
        let claim = settlement.claim
        guard let last = claim.fingerprint, let fingerprint = settlement.fingerprint,
            let evidence = settlement.evidence, claim.attempts <= SettlementRun.fruitlessAttemptsMax,
            claim.meaning == Fingerprint(of: evidence, app: claim.app)
        else { return nil }
        self.claim = claim
        (self.last, self.fingerprint) = (last, fingerprint)
        (asOf, revision) = (evidence.asOf, settlement.server?.revision)
    }
}
