package import Subscriptions

/// Apple's answer about a claimed receipt, read only where it differs from the last one.
package struct UnreadAnswer: Sendable {
    /// The claim.
    package let claim: Claim
    /// Apple's answer as it came, kept with the observation.
    package let body: [UInt8]
    /// Apple's clock; nil where it cannot be believed.
    package let asOf: Instant?
    /// Recognizes an equal answer next time; nil when this answer and the next one must be read in full.
    package let fingerprint: Fingerprint?
    fileprivate let read: @Sendable () -> Reading

    /// The content of an answer.
    package struct Reading: Sendable {
        /// The meaning of the answer.
        package let finding: Finding
        /// The newest receipt, as Apple returned it; stored with a new version only.
        package let latestReceipt: [UInt8]?

        /// The content of an answer.
        package init(finding: Finding, latestReceipt: [UInt8]?) {
            self.finding = finding
            self.latestReceipt = latestReceipt
        }
    }

    /// A claim with its answer.
    package init(
        claim: Claim, body: [UInt8], asOf: Instant?, fingerprint: Fingerprint?, read: @escaping @Sendable () -> Reading
    ) {
        self.claim = claim
        self.body = body
        self.asOf = asOf
        self.fingerprint = fingerprint
        self.read = read
    }
}

extension EqualAnswer {
    /// Returns nil where the answer differs from the last one.
    init?(_ answer: UnreadAnswer) {
        guard let fingerprint = answer.fingerprint, let asOf = answer.asOf else { return nil }
        self.init(to: answer.claim, fingerprint: fingerprint, asOf: asOf)
    }
}

extension Settlement {
    /// Reads an answer.
    init(reading answer: UnreadAnswer) {
        let reading = answer.read()
        self.init(
            claim: answer.claim, finding: reading.finding, body: answer.body, latestReceipt: reading.latestReceipt,
            fingerprint: answer.fingerprint)
    }
}
