package import Subscriptions

/// Apple's answer about a claimed receipt, interpreted only where it differs from the last one.
package struct PendingAnswer: Sendable {
    /// The claim.
    package let claim: Claim
    /// Apple's answer as it came, kept with the observation.
    package let body: [UInt8]
    /// Apple's clock; nil where it cannot be believed.
    package let asOf: Instant?
    /// Recognizes an equal answer next time; nil when this answer and the next one must be interpreted.
    package let fingerprint: Fingerprint?
    fileprivate let interpret: @Sendable () -> Interpretation

    /// What an answer means.
    package struct Interpretation: Sendable {
        /// The meaning of the answer.
        package let finding: Finding
        /// The newest receipt, as Apple returned it; stored with a new version only.
        package let latestReceipt: [UInt8]?
        /// How far the Server API was read; nil for an answer of verifyReceipt.
        package let server: ServerRead?

        /// What an answer means.
        package init(finding: Finding, latestReceipt: [UInt8]?, server: ServerRead? = nil) {
            self.finding = finding
            self.latestReceipt = latestReceipt
            self.server = server
        }
    }

    /// A claim with its answer.
    package init(
        claim: Claim, body: [UInt8], asOf: Instant?, fingerprint: Fingerprint?,
        interpret: @escaping @Sendable () -> Interpretation
    ) {
        self.claim = claim
        self.body = body
        self.asOf = asOf
        self.fingerprint = fingerprint
        self.interpret = interpret
    }
}

extension EqualAnswer {
    /// Returns nil where the answer differs from the last one.
    init?(_ answer: PendingAnswer) {
        guard let fingerprint = answer.fingerprint, let asOf = answer.asOf else { return nil }
        self.init(to: answer.claim, fingerprint: fingerprint, asOf: asOf)
    }
}

extension Settlement {
    /// Interprets an answer.
    init(interpreting answer: PendingAnswer) {
        let interpretation = answer.interpret()
        self.init(
            claim: answer.claim, finding: interpretation.finding, body: answer.body,
            latestReceipt: interpretation.latestReceipt, fingerprint: answer.fingerprint,
            server: interpretation.server)
    }
}
