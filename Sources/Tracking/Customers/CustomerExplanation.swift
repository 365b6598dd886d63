package import Subscriptions

/// One customer's entitlements at an instant, with the reasons, from stored data.
package struct CustomerExplanation: Sendable {
    /// An entitlement, its source and the other candidates.
    package struct Right: Sendable {
        package let name: String
        /// The source that decides.
        package let winner: Reasons.Source
        package let losers: [Reasons.Source]
    }

    /// One field of an answer that decided.
    package struct Step: Sendable {
        /// The rule that it decided.
        package let rule: String
        /// The observation with the answer; nil when the answer is no longer known.
        package let observation: Observation?
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
        subscriptions = reasons.subscriptions.filter { one in
            entitlement == nil || sources.contains { $0.subscription == one.id }
        }
        purchases = reasons.purchases.filter { one in
            entitlement == nil || sources.contains { $0.purchase == one.id }
        }
    }

    /// Explains the entitlements of a customer from a ledger, without asking Apple.
    package init(
        in ledger: SubscriptionLedger, app bundleID: BundleID, customer: String, entitlement: String? = nil,
        at time: Instant? = nil
    ) async throws {
        self.init(
            try await ledger.customers.reasons(app: bundleID, customer: customer, at: time, reading: .present),
            entitlement: entitlement)
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
            let observed = Observation.split(ground.path)
            let path = observed?.path ?? ground.path
            return CustomerExplanation.Step(
                rule: ground.rule, observation: observed.flatMap { observations[$0.id] }, path: path,
                value: ground.value, sentence: sentence(of: path, ground.value))
        }
    }

    /// Returns the sentence for a field. Within a term, Apple's status is that of its next payment.
    private func sentence(of path: String, _ value: String) -> String {
        guard path.hasSuffix("auto_renew_status"), value == "1", state.sale.paymentNumber != nil,
            state.facts.currentRenewal?.value.term?.renews == false
        else { return FieldSentence.of(path, value) }
        return "The customer cancelled; \(state.termEnd)."
    }
}

extension SubscriptionState {
    /// How long the payments of a term go on that the customer cancelled, in plain words.
    fileprivate var termEnd: String {
        let end = sale.termEndsAt.map { "the term ends at \($0.iso8601)" } ?? "the term ends with its last payment"
        return "\(end), and payments go on until then"
    }
}

extension PurchaseReasons {
    /// Returns the fields that decided.
    package func steps(at instant: Instant) -> [CustomerExplanation.Step] {
        let isRevoked = state.revokedAt.map { $0 <= instant } ?? false
        let revoked = state.facts.isShared ? Rule.familyRevoked.rawValue : "purchase_refunded"
        let rule = isRevoked ? revoked : "purchased"
        let revocation = state.revokedAt.map { step(rule, state.facts.revocation.origin, "cancellation_date_ms", $0) }
        let field = state.facts.terms.value.isOriginal ? "original_purchase_date_ms" : "purchase_date_ms"
        return [step(rule, state.facts.terms.origin, field, state.purchasedAt)]
            + [revocation].compactMap(\.self)
    }

    private func step(
        _ rule: String, _ origin: FactOrigin, _ field: String, _ instant: Instant
    ) -> CustomerExplanation.Step {
        let observed = Observation.split(origin.path)
        let row = observed?.path ?? origin.path
        let path = row.isEmpty ? field : "\(row).\(field)"
        let value = String(instant.milliseconds)
        return CustomerExplanation.Step(
            rule: rule, observation: observed.flatMap { observations[$0.id] }, path: path, value: value,
            sentence: FieldSentence.of(path, value))
    }
}

extension CustomerExplanation {
    /// A subscription or purchase with its reasons, in the words of every form of the explanation.
    package struct Thing: Sendable {
        package let title: String
        package let conclusion: String
        /// The rule that decided a subscription.
        package var rule: String?
        /// How a subscription is paid, as a sentence; nil where there is nothing to say.
        package var paid: String?
        package let steps: [Step]
        package let gap: String?
        /// Who owns it, and how they came to own it.
        package let owner: String
        /// What happens to a subscription if no further answer comes, and when Apple is asked.
        package var expected: String?
        /// Apple's clock and when the last answer about a subscription came.
        package var clocks: String?

        /// The conclusion with its rule.
        package var says: String { conclusion + (rule.map { " (The rule: \($0).)" } ?? "") }
    }

    package var things: [Thing] { subscriptions.map(thing(of:)) + purchases.map(thing(of:)) }

    package func thing(of one: SubscriptionReasons) -> Thing {
        let (state, verdict) = (one.state, one.verdict(at: reasons.at))
        return Thing(
            title:
                "Subscription \(state.facts.originalTransactionID): \(verdict.productID), \(one.environment.rawValue)",
            conclusion: one.conclusion(of: verdict), rule: one.rule(of: verdict),
            paid: state.sale.words.map { "Paid: \($0)." }, steps: one.steps(of: verdict), gap: one.gap,
            owner: one.ownership.sentence(for: reasons.customer, accountToken: state.facts.appAccountToken),
            expected: next(of: one, verdict),
            clocks: "Known as of Apple's clock \(state.asOf.iso8601); the last answer came at \(one.checkedAt.iso8601)."
        )
    }

    package func thing(of one: PurchaseReasons) -> Thing {
        let (state, facts) = (one.state, one.state.facts)
        return Thing(
            title: "Purchase \(state.transactionID): \(facts.key.productID), \(one.environment.rawValue)",
            conclusion: one.conclusion(at: reasons.at), steps: one.steps(at: reasons.at), gap: one.gap,
            owner: one.ownership.sentence(for: reasons.customer, accountToken: facts.appAccountToken?.value))
    }

    /// The explanation in lines, for a reader who has never seen a receipt.
    package var text: String {
        var lines = ["\(reasons.customer) in \(reasons.bundleID) at \(reasons.at.iso8601)", ""]
        lines += summary
        for right in rights { lines += [""] + self.lines(of: right) }
        for thing in things { lines += [""] + self.lines(of: thing) }
        if !reasons.receipts.isEmpty { lines += [""] + reasons.receipts.map(\.sentence) }
        return lines.map(\.visible).joined(separator: "\n")
    }

    /// The answer in a sentence or two.
    package var summary: [String] {
        guard reasons.isKnown else {
            return [
                "This customer is unknown: no receipt was ever uploaded under that name, so there is nothing to use."
            ]
        }
        guard rights.isEmpty else {
            let granted = rights.filter(\.winner.granted).map(\.name)
            return [granted.isEmpty ? "The customer may use nothing." : "The customer may use \(list(granted))."]
        }
        if reasons.receipts.isEmpty { return ["There is no receipt of this customer, so there is nothing to use."] }
        if reasons.receipts.allSatisfy({ $0.verifiedAt == nil }) {
            return ["Apple has not vouched for any receipt of this customer yet, so there is nothing to use."]
        }
        return ["Nothing the customer owned at that moment gives, or ever gave, \(entitlement ?? "any entitlement")."]
    }

    private func list(_ names: [String]) -> String {
        guard names.count > 1, let last = names.last else { return names.first ?? "" }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }

    private func lines(of right: Right) -> [String] {
        let words = words(of: right)
        return ["\(right.name): \(words.answer)."] + ([words.source] + words.losses).map { "  " + $0 }
    }

    /// Returns the answer about an entitlement, where it comes from, and why not from elsewhere.
    package func words(of right: Right) -> (answer: String, source: String, losses: [String]) {
        let winner = right.winner
        let until = winner.until.map { "until \($0.iso8601) unless something changes" } ?? "without an end"
        return (
            winner.granted ? "yes, \(until)" : "no",
            "\(winner.granted ? "It comes from" : "What decides is") \(name(of: winner)).",
            right.losers.map { "Not from \(name(of: $0)): \($0.loss(to: winner))." }
        )
    }

    /// Returns the name of a source in the words of a reader.
    private func name(of source: Reasons.Source) -> String {
        if let id = source.subscription, let one = reasons.subscriptions.first(where: { $0.id == id }) {
            return "subscription \(one.state.facts.originalTransactionID) (\(product(of: source)))"
        }
        if let id = source.purchase, let one = reasons.purchases.first(where: { $0.id == id }) {
            return "purchase \(one.state.transactionID) (\(product(of: source)))"
        }
        if let grant = source.manualGrant { return grant.name }
        let product = "\(source.productID?.text ?? "") (\(source.environment.rawValue))"
        return source.isProvisional ? "what was said with the upload, until Apple is asked: \(product)" : product
    }

    private func product(of source: Reasons.Source) -> String {
        [source.productID?.text, source.environment.rawValue].compactMap(\.self).joined(separator: ", ")
    }

    private func lines(of thing: Thing) -> [String] {
        let head = [thing.says, thing.paid, "Why:"].compactMap(\.self)
        let steps = thing.steps.enumerated().flatMap { self.lines(of: $1, number: $0 + 1) }
        let tail = [thing.gap.map { "From stored facts: \($0)" }, thing.owner, thing.expected, thing.clocks]
        return [thing.title] + head.map { "  " + $0 } + steps + tail.compactMap { $0.map { "  " + $0 } }
    }

    private func lines(of step: Step, number: Int) -> [String] {
        let source =
            step.observation.map { seen in
                "observation \(seen.id) about receipt \(seen.receiptID), seen from \(seen.firstAsOf.iso8601) to "
                    + seen.lastAsOf.iso8601
            } ?? "an answer that is no longer kept"
        return ["    \(number). \(step.sentence)", "       \(step.path) = \(step.value), in \(source)"]
    }

    private func next(of subscription: SubscriptionReasons, _ verdict: Verdict) -> String {
        let ask =
            subscription.nextCheckAt.map { at in
                "Apple is asked again at \(at.iso8601)\(subscription.polledBy.map { " about receipt \($0)" } ?? "")"
            } ?? "Apple is not asked about it any more"
        return "Next: \(ask); \(end(of: subscription, verdict))."
    }

    private func end(of subscription: SubscriptionReasons, _ verdict: Verdict) -> String {
        if let held = subscription.allowedUntil { return "without an answer access ends at \(held.iso8601)" }
        guard let until = verdict.entitledUntil else { return "without news it stays as it is" }
        switch verdict.state {
        case .active where subscription.state.nextPayment == true && subscription.state.willRenew == false:
            return "the customer cancelled, and \(subscription.state.termEnd); the next payment is due at "
                + "\(verdict.expiresAt.iso8601), and access ends when Apple says it failed"
        case .active where subscription.state.nextPayment == true:
            let next =
                subscription.state.renewsToProductID.flatMap { $0 == verdict.productID ? nil : " as \($0)" } ?? ""
            return
                "it is expected to renew\(next) at \(verdict.expiresAt.iso8601), and access ends when Apple says it did not"
        case .active: return "access ends at \(until.iso8601)"
        case .gracePeriod: return "access ends at \(until.iso8601) unless the payment succeeds before"
        case .awaitingRenewal where verdict.isOfMoved: return "access ends at \(until.iso8601)"
        case .awaitingRenewal: return "news is due any moment, and access ends at \(until.iso8601) if it is not good"
        case .billingRetry, .expired, .revoked: return "without news it stays as it is"
        }
    }
}

extension ManualGrant {
    /// Who made the grant, when and why, and how it ended.
    fileprivate var name: String {
        let given = "what \(givenBy) granted manually at \(since.iso8601): \(reason)"
        return endedBy.map { "\(given); \($0) ended it: \(endReason ?? "")" } ?? given
    }
}
