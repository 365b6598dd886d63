import Ledger
import Subscriptions

/// What one customer may use at an instant, and why, from what is stored.
package struct CustomerExplanation: Sendable {
    /// A right, what gives it and what else could have.
    struct Right: Sendable {
        let name: String
        /// What decides; the others lost to it.
        let winner: Reasons.Source
        let losers: [Reasons.Source]
    }

    /// One field of one answer that decided.
    struct Step: Sendable {
        let rule: String
        /// Where it is kept; nil when the answer is no longer known.
        let observation: Observation?
        /// The path within the answer.
        let path: String
        /// Apple's value as Apple wrote it.
        let value: String
        /// The same in plain words.
        let sentence: String
    }

    let reasons: Reasons
    let rights: [Right]
    let subscriptions: [SubscriptionReasons]
    let purchases: [PurchaseReasons]
    /// The right asked about; nil for all of them.
    let entitlement: String?

    /// Whether anything was found that gives, or gave, what was asked about.
    package var namesRights: Bool { !rights.isEmpty }

    /// Explains the rights of a customer, or one of them.
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
    /// Explains the rights of a customer from a ledger; nobody has to be asked for that.
    package init(
        in ledger: SubscriptionLedger, app bundleID: BundleID, customer: String, entitlement: String? = nil,
        at time: Instant? = nil, speedup: Int = 1
    ) async throws {
        let reasons = try await ledger.reasons(
            app: bundleID, customer: customer, at: time, speedup: speedup, reading: { $0.evidence }
        ) { stored, evidence, policy in
            reconcile(stored, with: evidence, policy: policy)
        }
        self.init(reasons, entitlement: entitlement)
    }
}

extension SubscriptionReasons {
    /// What the subscription is at an instant.
    func verdict(at instant: Instant) -> Verdict {
        Subscriptions.verdict(of: state.facts, at: instant, policy: policy.with(leeway: state.leeway))
    }

    /// The rule that decided; `held` comes before the rule of the verdict.
    func rule(of verdict: Verdict) -> String? {
        heldUntil == nil ? verdict.because.first?.rule : "held"
    }

    /// The fields that decided, in the order they were looked at.
    func steps(of verdict: Verdict) -> [CustomerExplanation.Step] {
        verdict.because.filter { !$0.path.isEmpty }.map { ground in
            let path = ground.observed?.path ?? ground.path
            return CustomerExplanation.Step(
                rule: ground.rule, observation: ground.observed.flatMap { observations[$0.id] }, path: path,
                value: ground.value, sentence: FieldSentence.of(path, ground.value))
        }
    }
}

extension PurchaseReasons {
    /// Whether Apple had taken it back at an instant.
    func isRevoked(at instant: Instant) -> Bool {
        state.revokedAt.map { $0 <= instant } ?? false
    }

    /// The fields that decided.
    func steps(at instant: Instant) -> [CustomerExplanation.Step] {
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
