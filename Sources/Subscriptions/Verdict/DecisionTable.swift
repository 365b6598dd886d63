/// Returns the verdict on a subscription at a single instant, by the one decision table, `DecisionTable`. An instant
/// before the first period yields `expired` with reason `unknown`, without access.
package func verdict(of facts: SubscriptionFacts, at instant: Instant, policy: Policy) -> Verdict {
    DecisionTable(facts, policy: policy).verdict(at: instant, explained: true)
}

/// The decision table over one subscription, prepared for many instants. docs/lifecycle.md shows it as a table. Before
/// the newest answer, only periods that had begun exist; from then on all, including a renewal charged ahead of time.
struct DecisionTable {
    /// The values the table reads repeatedly, without reference counting.
    struct Stretch {
        let purchasedAt: Instant
        let expiresAt: Instant
        /// The instant from which the period no longer counts; nil for a live one.
        let voidAt: Instant?
        let isUpgraded: Bool
        /// The instant another period took its place: see `Replacement`.
        let replacedAt: Instant?
    }

    let facts: SubscriptionFacts
    let policy: Policy
    /// In order of purchase.
    let stretches: [Stretch]
    private let last: Int?
    private let currentRenewal: RenewalFacts?
    /// When the next payment of a term was made late, by the payment before it.
    private let recoveries: [Instant?]

    init(_ facts: SubscriptionFacts, policy: Policy) {
        self.facts = facts
        self.policy = policy
        stretches = zip(facts.periods, Replacement.instants(in: facts.periods)).map { Stretch($0, replacedAt: $1) }
        last = Period.indexOfLast(in: facts.periods)
        currentRenewal = facts.currentRenewalFacts
        recoveries = facts.recoveries(by: policy)
    }

    /// Returns the renewal information about the end of a period.
    func renewal(of index: Int) -> RenewalFacts? {
        index == last ? currentRenewal : facts.renewalFacts(after: index)?.after(facts.periods[index])
    }

    /// Returns the end of the grace that Apple granted after a period; nil if it granted none.
    func graceEnd(of index: Int, _ renewal: RenewalFacts?) -> Instant? {
        let period = facts.periods[index]
        return renewal?.graceEnds(orBy: period.expiresAt + policy.longestGrace(after: period))
    }

    /// Every instant at which the verdict may change, starting at the first purchase or an earlier newest answer.
    var boundaries: [Instant] {
        let start = min(stretches.first?.purchasedAt ?? facts.asOf, facts.asOf)
        var instants: Set<Instant> = [start, facts.asOf]
        for (index, stretch) in stretches.enumerated() {
            instants.formUnion([stretch.purchasedAt, stretch.expiresAt, stretch.expiresAt + policy.leeway])
            if let voidAt = stretch.voidAt { instants.insert(voidAt) }
            if let replacedAt = stretch.replacedAt { instants.insert(replacedAt) }
            if let grace = graceEnd(of: index, renewal(of: index)) { instants.insert(grace) }
        }
        return instants.filter { $0 >= start }.sorted()
    }

    /// Returns the verdict at an instant, with its grounds only if `explained`.
    func verdict(at instant: Instant, explained: Bool = false) -> Verdict {
        verdict(of: view(at: instant), at: instant, explained: explained)
    }

    func verdict(of view: View, at instant: Instant, explained: Bool) -> Verdict {
        guard let decision = decide(view, at: instant) else {
            let product = facts.periods.first?.productID ?? facts.renewal?.value.productID ?? ProductID("")
            return Verdict(
                state: .expired, reason: .unknown, productID: product,
                expiresAt: stretches.first?.expiresAt ?? facts.asOf, entitledUntil: nil, flags: [],
                because: explained ? [Ground(rule: Rule.notStarted.rawValue, path: "", value: "")] : [])
        }
        return Verdict(
            state: decision.rule.state, reason: decision.rule.reason,
            productID: facts.periods[decision.subject].productID,
            expiresAt: facts.periods[decision.head].expiresAt, entitledUntil: decision.entitledUntil,
            flags: flags(decision, at: instant), because: explained ? grounds(of: decision) : [])
    }
}

extension Policy {
    /// Returns the longest grace that Apple grants after a period (Apple: "Enable Billing Grace Period"). A week may be an
    /// hour longer, because Apple counts by the Pacific calendar. The length of what may be free says nothing about its
    /// product; an introductory price of a week is that of a weekly one.
    fileprivate func longestGrace(after period: Period) -> Delay {
        let mayBeFree =
            period.isFree || period.details.promotionalOfferID != nil || period.details.offerCodeRefName != nil
        let week = Delay.hours(7 * 24 + 2).divided(by: speedup)
        let isWeekly = !mayBeFree && period.expiresAt - period.purchasedAt <= week
        return Delay.days(isWeekly ? 6 : 28).divided(by: speedup)
    }
}

extension Period {
    /// What its end is called, if it was taken back: a refund only where Apple's words are known.
    fileprivate var revokedBy: Rule {
        if isShared { return .familyRevoked }
        let isKnown = [nil, "0", "1"].contains(revocation.value.reason)
        return isKnown && details.sale?.value.revokesUnread != true ? .refunded : .revokedOtherwise
    }
}

extension DecisionTable.Stretch {
    init(_ period: Period, replacedAt: Instant?) {
        purchasedAt = period.purchasedAt
        expiresAt = period.expiresAt
        isUpgraded = period.isUpgraded
        self.replacedAt = replacedAt
        // The period is void as soon as Apple reports the cancellation, even if its date is still in the future. The date
        // of a replaced one may be that of a later refund.
        let cancelledAt = period.cancelledAt.map { min($0, period.revocation.asOf) }
        voidAt =
            period.isUpgraded
            ? [cancelledAt, replacedAt].compactMap(\.self).min() ?? Instant(milliseconds: .min) : cancelledAt
    }

    /// Returns whether the period no longer counts.
    func isVoid(at instant: Instant) -> Bool { voidAt.map { $0 <= instant } ?? false }
}

extension DecisionTable {
    /// Returns the decision of the first matching row of the table at an instant; nil if no period exists yet.
    func decide(_ view: View, at instant: Instant) -> Decision? {
        if let running = view.running {
            let head = view.head ?? running
            return Decision(
                rule: .runningPeriod, subject: running, head: head, entitledUntil: stretches[head].expiresAt,
                renewal: renewal(of: head))
        }
        if let head = view.head, stretches[head].expiresAt > instant {
            return Decision(
                rule: .chargedAhead, subject: head, head: head, entitledUntil: stretches[head].expiresAt,
                renewal: renewal(of: head))
        }
        let replaced = view.replaced.flatMap { isOpen($0, at: instant) ? $0 : nil }
        if let refunded = view.refunded, follows(refunded, view.head), !isLater(replaced, refunded) {
            return Decision(
                rule: facts.periods[refunded].revokedBy, subject: refunded, head: refunded, entitledUntil: nil,
                renewal: renewal(of: refunded))
        }
        if let replaced, view.head.map({ isLater(replaced, $0) }) ?? true {
            return decideReplaced(replaced, at: instant)
        }
        return (view.head ?? view.replaced).map { decideLapsed($0, at: instant) }
    }

    /// Returns whether the refunded period comes after every live one, so that its refund decides.
    private func follows(_ refunded: Int, _ head: Int?) -> Bool {
        guard let head else { return true }
        return stretches[refunded].expiresAt > stretches[head].expiresAt
            && stretches[refunded].purchasedAt >= stretches[head].purchasedAt
    }

    private func isLater(_ index: Int?, _ other: Int) -> Bool {
        index.map { stretches[$0].purchasedAt > stretches[other].purchasedAt } ?? false
    }

    /// Returns whether no replacement of an upgraded period is visible yet in this subscription.
    private func isOpen(_ replaced: Int, at instant: Instant) -> Bool {
        guard let replacedAt = stretches[replaced].replacedAt else { return true }
        return instant < facts.asOf && instant < replacedAt
    }

    private func decideReplaced(_ index: Int, at instant: Instant) -> Decision {
        let end = stretches[index].expiresAt
        if facts.periods[index].details.replacedBy != nil || facts.periods[index].movedTo != nil && end <= instant {
            return Decision(rule: .replacedElsewhere, subject: index, head: index, entitledUntil: nil, renewal: nil)
        }
        guard end > instant else { return decideLapsed(index, at: instant) }
        return Decision(
            rule: .replacementAwaited, subject: index, head: index, entitledUntil: end, renewal: renewal(of: index))
    }

    /// Decides by rows 7 to 15: a period is over and nothing follows.
    func decideLapsed(_ index: Int, at instant: Instant) -> Decision {
        let renewal = renewal(of: index)
        let (rule, until) = lapse(index, renewal, at: instant)
        return Decision(rule: rule, subject: index, head: index, entitledUntil: until, renewal: renewal)
    }

    private func lapse(_ index: Int, _ facts: RenewalFacts?, at instant: Instant) -> (Rule, until: Instant?) {
        if let grace = graceEnd(of: index, facts), grace > instant { return (.grace, grace) }
        // The payment that was made late proves that this one failed, whether or not Apple was asked meanwhile.
        if let recovered = recoveries[index], instant < recovered { return (.billingRetry, nil) }
        let renewal = facts?.said.value
        let intent = renewal?.expirationIntent
        if renewal?.inBillingRetry == true, intent == nil || intent == "2" { return (.billingRetry, nil) }
        let leewayEnd = stretches[index].expiresAt + policy.leeway
        if renewal?.isExpected ?? true, instant < leewayEnd { return (.renewalAwaited, leewayEnd) }
        switch intent {
        case "1": return (.intentVoluntary, nil)
        case "2": return (.intentBilling, nil)
        case "3": return (.intentPriceIncrease, nil)
        case "4": return (.intentProductUnavailable, nil)
        case .some: return (.intentOther, nil)
        case nil: return (renewal?.willRenew == false ? .renewalOff : .nothingSaid, nil)
        }
    }
}

extension DecisionTable {
    /// The periods that matter at one instant.
    struct View {
        /// The live period in progress that ends last.
        var running: Int?
        /// The live period that ends last, in progress or not.
        var head: Int?
        /// The refunded or revoked period that starts last.
        var refunded: Int?
        /// The replaced period that starts last.
        var replaced: Int?
    }

    /// Returns the view at an instant, found by examining every period.
    func view(at instant: Instant) -> View {
        var view = View()
        for (index, stretch) in stretches.enumerated() where isVisible(index, at: instant) {
            if stretch.isVoid(at: instant) {
                note(index, in: &view)
                continue
            }
            view.head = endingLast(view.head, index)
            if stretch.purchasedAt <= instant && instant < stretch.expiresAt {
                view.running = endingLast(view.running, index)
            }
        }
        return view
    }

    /// Returns whether a period exists at an instant.
    func isVisible(_ index: Int, at instant: Instant) -> Bool {
        instant >= facts.asOf || stretches[index].purchasedAt <= instant
    }

    /// Records a period that no longer counts.
    func note(_ index: Int, in view: inout View) {
        if stretches[index].isUpgraded {
            view.replaced = max(view.replaced ?? index, index)
        } else {
            view.refunded = max(view.refunded ?? index, index)
        }
    }

    /// Returns the period that ends later; of two with the same end, the one that starts later.
    private func endingLast(_ known: Int?, _ index: Int) -> Int {
        guard let known else { return index }
        return (stretches[known].expiresAt, known) < (stretches[index].expiresAt, index) ? index : known
    }
}

extension DecisionTable {
    /// Returns the flags of the subject and, while active, of the head's renewal.
    func flags(_ decision: Decision, at instant: Instant) -> [Flag] {
        let subject = facts.periods[decision.subject]
        let head = facts.periods[decision.head]
        var flags: [Flag] = []
        if subject.isTrial { flags.append(.trial) }
        if subject.isIntro { flags.append(.intro) }
        if subject.details.promotionalOfferID != nil { flags.append(.promotionalOffer) }
        if subject.details.offerCodeRefName != nil { flags.append(.offerCode) }
        if subject.isShared {
            flags.append(subject.details.ownership?.value == .familyShared ? .familyShared : .assigned)
        }
        if decision.rule.state == .active {
            if head.purchasedAt > instant { flags.append(.futureDated) }
            let renewal = decision.renewal?.said.value
            if renewal?.awaitsPriceConsent == true { flags.append(.priceConsentPending) }
            if let renewal, renewal.isWanted == true, renewal.changes(from: head) {
                flags.append(.changeScheduled)
            }
        }
        return flags.sorted()
    }

    /// Returns the fields that decided: without any one of them the answer, or the rule that gives it, would differ.
    func grounds(of decision: Decision) -> [Ground] {
        let subject = facts.periods[decision.subject]
        let head = facts.periods[decision.head]
        let expiry = expiryGround(decision.rule, head)
        let renewal = decision.renewal
        let intent = ground(decision.rule, renewal?.row, "expiration_intent", renewal?.row.value.expirationIntent)
        let retry = ground(
            decision.rule, renewal?.inBillingRetry, "is_in_billing_retry_period",
            renewal?.inBillingRetry.map { $0.value ? "1" : "0" })
        let status = ground(
            decision.rule, renewal?.willRenew, "auto_renew_status", renewal?.willRenew.map { $0.value ? "1" : "0" })
        switch decision.rule {
        case .runningPeriod, .chargedAhead:
            let running = decision.subject == decision.head ? [] : [expiryGround(decision.rule, subject)]
            return running + [expiry] + [status].compactMap { $0 }
        case .refunded, .revokedOtherwise:
            return [cancellation(decision.rule, subject), expiry].compactMap { $0 }
        case .familyRevoked:
            let ownership = ground(
                decision.rule, subject.details.ownership, "in_app_ownership_type", subject.details.ownership?.value.raw)
            return [cancellation(decision.rule, subject), ownership, expiry].compactMap { $0 }
        case .replacementAwaited where subject.movedTo != nil, .replacedElsewhere where subject.movedTo != nil:
            let path = joined(subject.upgrade.path, "original_transaction_id")
            return [Ground(rule: decision.rule.rawValue, path: path, value: subject.movedTo?.text ?? ""), expiry]
        case .replacementAwaited, .replacedElsewhere:
            return [ground(decision.rule, subject.upgrade, "is_upgraded", "true"), expiry].compactMap { $0 }
        case .grace where renewal?.isGraceAssumed == true:
            let path = renewal?.graceByStatus?.path ?? ""
            let place = path.lastIndex(of: ".").map { path[...$0] } ?? ""
            return [expiry, Ground(rule: decision.rule.rawValue, path: "\(place)status", value: "4")]
        case .grace:
            let grace = ground(
                decision.rule, renewal?.graceExpiresAt?.origin, "grace_period_expires_date",
                renewal?.graceExpiresAt?.value)
            return [expiry] + [grace].compactMap { $0 }
        case .billingRetry:
            return [expiry] + [retry].compactMap { $0 }
        case .intentVoluntary, .intentBilling, .intentPriceIncrease, .intentProductUnavailable,
            .intentOther:
            return [expiry] + [intent].compactMap { $0 }
        case .renewalAwaited, .renewalOff, .nothingSaid, .notStarted:
            return [expiry] + [status].compactMap { $0 }
        }
    }

    private func expiryGround(_ rule: Rule, _ period: Period) -> Ground {
        // Only the rows of a legacy answer stand outside a list; their plain field holds the milliseconds.
        let form = period.terms.origin.form ?? (period.path.hasSuffix("]") ? .milliseconds : .plain)
        return Ground(
            rule: rule.rawValue, path: joined(period.path, form.field("expires_date")),
            value: form.value(period.expiresAt))
    }

    private func cancellation(_ rule: Rule, _ period: Period) -> Ground? {
        ground(rule, period.revocation.origin, "cancellation_date", period.cancelledAt)
    }

    private func ground(_ rule: Rule, _ origin: FactOrigin?, _ name: String, _ instant: Instant?) -> Ground? {
        guard let origin, let instant else { return nil }
        let form = origin.form ?? .milliseconds
        return Ground(rule: rule.rawValue, path: joined(origin.path, form.field(name)), value: form.value(instant))
    }

    private func ground<Value>(_ rule: Rule, _ fact: Fact<Value>?, _ field: String, _ value: String?) -> Ground? {
        guard let fact, let value else { return nil }
        return Ground(rule: rule.rawValue, path: joined(fact.path, field), value: value)
    }

    private func joined(_ path: String, _ field: String) -> String { path.isEmpty ? field : "\(path).\(field)" }
}

/// Follows the input of the decision table through time, so that a whole subscription life is decided in n log n.
/// Equivalent to `DecisionTable.view(at:)` for instants that never go back.
struct DecisionSweep {
    private let table: DecisionTable
    /// The periods that stop counting, ordered by the instant at which they do.
    private let ending: [Int]
    private var view = DecisionTable.View()
    private var live = LatestFirst()
    private var underWay = LatestFirst()
    private var visible = 0
    private var begun = 0
    private var ended = 0

    init(_ table: DecisionTable) {
        self.table = table
        ending = table.stretches.indices.filter { table.stretches[$0].voidAt != nil }.sorted { left, right in
            let (first, second) = (table.stretches[left].voidAt, table.stretches[right].voidAt)
            return first.map { first in second.map { first < $0 } ?? false } ?? false
        }
    }

    /// Returns the view at an instant, which must not be earlier than the previous call's.
    mutating func view(at instant: Instant) -> DecisionTable.View {
        let stretches = table.stretches
        while ended < ending.count, stretches[ending[ended]].isVoid(at: instant) {
            if ending[ended] < visible { table.note(ending[ended], in: &view) }
            ended += 1
        }
        while visible < stretches.count, table.isVisible(visible, at: instant) {
            if stretches[visible].isVoid(at: instant) {
                table.note(visible, in: &view)
            } else {
                live.insert(visible, endingAt: stretches[visible].expiresAt)
            }
            visible += 1
        }
        while begun < stretches.count, stretches[begun].purchasedAt <= instant {
            underWay.insert(begun, endingAt: stretches[begun].expiresAt)
            begun += 1
        }
        view.head = live.first { !stretches[$0].isVoid(at: instant) }
        view.running = underWay.first { !stretches[$0].isVoid(at: instant) && instant < stretches[$0].expiresAt }
        return view
    }
}

/// A binary heap of periods by their end, the latest first; of two with the same end, the one that starts later.
private struct LatestFirst {
    private var entries: [(end: Instant, index: Int)] = []

    mutating func insert(_ index: Int, endingAt end: Instant) {
        entries.append((end, index))
        var child = entries.count - 1
        while child > 0, entries[(child - 1) / 2] < entries[child] {
            entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Returns the first period that counts. Removes those before it, which never count again.
    mutating func first(where counts: (Int) -> Bool) -> Int? {
        while let top = entries.first {
            if counts(top.index) { return top.index }
            removeFirst()
        }
        return nil
    }

    private mutating func removeFirst() {
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        var parent = 0
        while true {
            var latest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < entries.count {
                if entries[latest] < entries[child] { latest = child }
            }
            guard latest != parent else { return }
            entries.swapAt(parent, latest)
            parent = latest
        }
    }
}
