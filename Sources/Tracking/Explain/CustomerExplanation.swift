package import Ledger
package import Subscriptions

/// One customer's entitlements at an instant, with the reasons, from stored data.
package struct CustomerExplanation: Sendable {
    /// An entitlement, its source and the other candidates.
    package struct Right: Sendable {
        /// The name of the entitlement.
        package let name: String
        /// The source that decides.
        package let winner: Reasons.Source
        /// The sources that lost.
        package let losers: [Reasons.Source]
    }

    /// One field of an answer that decided.
    package struct Step: Sendable {
        /// The rule that it decided.
        package let rule: String
        /// The observation with the answer; nil when the answer is no longer known.
        package let observation: Observation?
        /// The path within the answer.
        package let path: String
        /// The value as Apple wrote it.
        package let value: String
        /// The field in plain words.
        package let sentence: String
    }

    /// What is stored about the customer.
    package let reasons: Reasons
    /// The entitlements asked about, by name.
    package let rights: [Right]
    /// The subscriptions that give, or gave, them.
    package let subscriptions: [SubscriptionReasons]
    /// The one-time purchases that give, or gave, them.
    package let purchases: [PurchaseReasons]
    /// The entitlement asked about; nil for all of them.
    let entitlement: String?

    /// Whether any source was found that gives, or gave, the entitlements asked about.
    package var namesRights: Bool { !rights.isEmpty }

    /// Explains the entitlements of a customer, or one of them.
    package init(_ reasons: Reasons, entitlement: String? = nil) {
        self.reasons = reasons
        self.entitlement = entitlement
        let sources = reasons.sources.filter { entitlement == nil || $0.entitlement == entitlement }
        let names = Set(sources.map(\.entitlement)).sorted()
        rights = names.compactMap { name in
            let candidates = sources.filter { $0.entitlement == name }
            return candidates.first.map { Right(name: name, winner: $0, losers: Array(candidates.dropFirst())) }
        }
        let isAsked = entitlement != nil
        subscriptions = reasons.subscriptions.filter { one in
            !isAsked || sources.contains { $0.subscription == one.id }
        }
        purchases = reasons.purchases.filter { one in !isAsked || sources.contains { $0.purchase == one.id } }
    }
}

extension CustomerExplanation {
    /// Explains the entitlements of a customer from a ledger, without asking Apple.
    package init(
        in ledger: SubscriptionLedger, app bundleID: BundleID, customer: String, entitlement: String? = nil,
        at time: Instant? = nil
    ) async throws {
        let reasons = try await ledger.customers.reasons(
            app: bundleID, customer: customer, at: time, reading: .present)
        self.init(reasons, entitlement: entitlement)
    }
}

extension SubscriptionReasons {
    /// Returns the state of the subscription at an instant.
    package func verdict(at instant: Instant) -> Verdict {
        Subscriptions.verdict(of: state.facts, at: instant, policy: policy.with(leeway: state.leeway))
    }

    /// Returns the rule that decided: `outage_allowance` during an outage allowance, else the rule of the verdict.
    package func rule(of verdict: Verdict) -> String? {
        allowedUntil == nil ? verdict.because.first?.rule : "outage_allowance"
    }

    /// Returns the fields that decided, in the order they were examined.
    package func steps(of verdict: Verdict) -> [CustomerExplanation.Step] {
        verdict.because.filter { !$0.path.isEmpty }.map { ground in
            let path = ground.observed?.path ?? ground.path
            return CustomerExplanation.Step(
                rule: ground.rule, observation: ground.observed.flatMap { observations[$0.id] }, path: path,
                value: ground.value, sentence: FieldSentence.of(path, ground.value))
        }
    }
}

extension PurchaseReasons {
    /// Returns whether Apple had revoked the purchase at an instant.
    func isRevoked(at instant: Instant) -> Bool {
        state.revokedAt.map { $0 <= instant } ?? false
    }

    /// Returns the fields that decided.
    package func steps(at instant: Instant) -> [CustomerExplanation.Step] {
        let rule = isRevoked(at: instant) ? "purchase_refunded" : "purchased"
        let revocation = state.revokedAt.map {
            step(rule, state.facts.revocation.origin, "cancellation_date_ms", $0)
        }
        return [step(rule, state.facts.terms.origin, "purchase_date_ms", state.purchasedAt)]
            + [revocation].compactMap(\.self)
    }

    private func step(
        _ rule: String, _ origin: FactOrigin, _ field: String, _ instant: Instant
    ) -> CustomerExplanation.Step {
        let row = origin.observed?.path ?? origin.path
        let path = row.isEmpty ? field : "\(row).\(field)"
        let value = String(instant.milliseconds)
        return CustomerExplanation.Step(
            rule: rule, observation: origin.observed.flatMap { observations[$0.id] }, path: path, value: value,
            sentence: FieldSentence.of(path, value))
    }
}
