/// The result of merging one more answer into a subscription.
package struct Reconciled: Sendable, Hashable {
    /// The new state; its version is one higher if `changed`.
    package var state: SubscriptionState
    /// The events, in order.
    package var events: [Event]
    /// Whether anything besides clocks and paths differs, or an event happened.
    package var changed: Bool
}

/// Merges one more answer into a subscription. A pure function without a clock: the evidence carries Apple's clock.
///
/// The same evidence again changes nothing and emits no event. docs/lifecycle.md lists the event of each change.
package func reconcile(
    _ stored: SubscriptionState?, with slice: SubscriptionEvidence, policy: Policy
) -> Reconciled {
    guard let stored, !stored.facts.periods.isEmpty else {
        let state = SubscriptionState(
            facts: SubscriptionFacts(slice), policy: policy, version: (stored?.version ?? 0) + 1)
        return Reconciled(state: state, events: firstSight(of: state), changed: true)
    }
    let accepted = RetractionGuard.accept(slice, into: stored, policy: policy)
    let state = SubscriptionState(
        facts: accepted.facts, policy: policy, version: stored.version,
        retractions: accepted.retractions)
    let change = StateChange(before: stored, after: state, saidAt: slice.asOf, policy: policy)
    let events = change.events
    let changed =
        !events.isEmpty || stored.leeway != state.leeway || !stored.facts.sameMeaning(as: state.facts)
    guard changed else { return Reconciled(state: state, events: [], changed: false) }
    return Reconciled(state: state.with(version: stored.version + 1), events: events, changed: true)
}

/// Merges one more answer likewise, with what is known of its line items under other original transaction ids.
///
/// A period that comes brings everything that is known of it, as if it had always been here: only what changed since it was
/// known where it was is an event. A period that is elsewhere by a newer statement changes nothing.
package func reconcile(
    _ stored: SubscriptionState?, with slice: SubscriptionEvidence, elsewhere: LineItemsElsewhere?, policy: Policy
) -> Reconciled {
    guard let elsewhere else { return reconcile(stored, with: slice, policy: policy) }
    let gone = elsewhere.gone.sorted { $0.key < $1.key }.map(\.value)
    func folded(into start: SubscriptionState?) -> SubscriptionState {
        gone.reduce(reconcile(start, with: slice, policy: policy).state) {
            reconcile($0, with: $1, policy: policy).state
        }
    }
    func events(since before: SubscriptionState, _ after: SubscriptionState) -> [Event] {
        StateChange(before: before, after: after, saidAt: slice.asOf, policy: policy).events
    }
    let known = stored.flatMap { $0.facts.periods.isEmpty ? nil : $0 }
    var state = folded(into: stored)
    let arrivals = elsewhere.arrivals(in: state.facts, since: known?.facts)
    var arrived: [Event] = []
    if !arrivals.isEmpty {
        let seed = elsewhere.seed(of: known, slice, with: arrivals, policy: policy)
        state = folded(into: seed).keeping(state, of: arrivals, policy: policy)
        arrived = events(since: seed, state).filter {
            elsewhere.isNews($0, of: arrivals, since: known?.asOf, in: state.facts)
        }
    }
    let own = known.map { events(since: $0, state) } ?? firstSight(of: state)
    let all = (arrivals.isEmpty ? own : own.filter { elsewhere.isOwn($0, besides: arrivals) }) + arrived
    let changed =
        known.map { !all.isEmpty || $0.leeway != state.leeway || !$0.facts.sameMeaning(as: state.facts) } ?? true
    let version = (stored?.version ?? 0) + (changed ? 1 : 0)
    return Reconciled(state: state.with(version: version), events: all, changed: changed)
}

extension SubscriptionState {
    /// Returns the same with the clocks of the subscription itself, and with what its own answers said of the renewal of
    /// periods that came.
    fileprivate func keeping(
        _ own: SubscriptionState, of arrivals: [Period], policy: Policy
    ) -> SubscriptionState {
        let periods = facts.periods.map { period in
            guard arrivals.contains(where: period.isCharge),
                let said = own.facts.periods.first(where: period.isCharge)?.renewal
            else { return period }
            var period = period
            period.renewal = merged(period.renewal, said)
            return period
        }
        let kept = SubscriptionFacts(
            originalTransactionID: facts.originalTransactionID, asOf: own.asOf, periods: periods,
            renewal: own.facts.renewal)
        return SubscriptionState(facts: kept, policy: policy, version: version, retractions: retractions)
    }
}

/// Returns one event for a subscription that was unknown until now, however much history it has.
private func firstSight(of state: SubscriptionState) -> [Event] {
    guard let first = state.facts.periods.first(where: { $0.movedTo == nil }) else { return [] }
    var event = Event(
        kind: first.isTrial ? .trialStarted : .subscriptionStarted, productID: first.productID,
        occurredAt: min(first.purchasedAt, state.asOf), detail: first.eventDetail)
    let isOver = state.timeline.span(at: state.asOf).map { !$0.entitled } ?? true
    if state.periods > 1 || isOver {
        event.detail["periods"] = .integer(Int64(state.periods))
        event.detail["backfill"] = .flag(true)
    }
    return [event]
}

extension Period {
    /// The details of the period that an event is about.
    var eventDetail: [String: DetailValue] {
        var detail: [String: DetailValue] = ["expires_at": .text(expiresAt.iso8601)]
        if let id = transactionIDs.min() { detail["transaction_id"] = .text(id.text) }
        if let id = webOrderLineItemID { detail["web_order_line_item_id"] = .text(id.text) }
        return detail
    }
}

/// Prevents a lagging replica at Apple from taking back what Apple said itself: a refund, of seats too, an upgrade mark,
/// or the end of the last live period, which moves back without a cancellation or upgrade. A period that moved to another
/// subscription is marked as refunded and upgraded at its start, so that it comes back likewise. A refund of the rest of
/// a replaced period's price is taken back where the replacement's own repayment is stated again.
///
/// What is taken back stays until a second, later answer takes it back too, ten minutes after the newest statement of it at
/// the earliest. A transaction inside statuses takes nothing back. Both channels list every period with its refund, mark and
/// end, so either may take back what the other one stated.
enum RetractionGuard {
    /// How long the newest statement of what is taken back stands at least.
    private static let standsFor = Delay.minutes(10)

    static func accept(
        _ slice: SubscriptionEvidence, into stored: SubscriptionState, policy: Policy
    ) -> (facts: SubscriptionFacts, retractions: [Retraction]) {
        let merged = stored.facts.adding(slice)
        var periods = merged.periods
        let match = PeriodMatch(periods)
        var waiting: [Retraction] = []
        func decide<Value>(
            _ what: Retraction.What, of known: Period, _ fact: WritableKeyPath<Period, Fact<Value>>, at index: Int,
            isTakenBack: Bool, end: Instant? = nil
        ) {
            guard let transaction = known.transactionIDs.min() else { return }
            let earlier = stored.retractions.first {
                known.transactionIDs.contains($0.transactionID) && $0.what == what
            }
            let (said, stated) = (periods[index][keyPath: fact].asOf, known[keyPath: fact].asOf)
            guard isTakenBack else {
                if let earlier, said < earlier.since { waiting.append(earlier) }
                return
            }
            let first = earlier.flatMap { $0.end == end ? $0 : nil }
            if counts(said, after: first?.since, statedAt: stated, policy: policy) { return }
            periods[index][keyPath: fact] = known[keyPath: fact]
            // The kind of a revocation, and the seats that were refunded before, go with it.
            if what != .end { periods[index].details.sale = known.details.sale ?? periods[index].details.sale }
            waiting.append(first ?? Retraction(of: transaction, what, end: end, since: said))
        }
        let replaced = Replacement.instants(in: periods)
        for (known, replacedAt) in zip(stored.facts.periods, Replacement.instants(in: stored.facts.periods)) {
            guard let index = match.index(of: known) else { continue }
            let isGone = known.cancelledAt != nil && periods[index].cancelledAt == nil
            let isRestGone =
                known.restRefundedAt(replacedAt: replacedAt) != nil
                && periods[index].isMerelyReplaced(at: replaced[index])
            decide(.revocation, of: known, \.revocation, at: index, isTakenBack: isGone || isRestGone)
            periods[index].keepShare(of: known, isRestGone: isRestGone)
            // The single row of an answer about an iOS 6 receipt stands in no list, and cannot state an upgrade.
            if known.isUpgraded, !periods[index].upgrade.path.contains("[") { periods[index].upgrade = known.upgrade }
            let isBack = known.movedTo != nil && periods[index].movedTo == nil
            decide(
                .upgrade, of: known, \.upgrade, at: index,
                isTakenBack: isBack || known.isUpgraded && !periods[index].isUpgraded)
            let isLess = slice.takesBackSeats(of: known, in: periods[index])
            decide(.seats, of: known, \.saleSaid, at: index, isTakenBack: isLess)
            if !isLess { periods[index].keepSale(of: known) }
            periods[index].keepMove(of: known)
            if periods[index].givesAccessAgain(after: known, by: slice) { periods[index].details.replacedBy = nil }
        }
        if let head = liveHead(of: stored.facts.periods), let index = match.index(of: head) {
            let isShorter = isShorter(index, than: head, in: periods)
            let isOfStatuses = slice.statesInStatuses(periods[index].terms)
            let end = periods[index].expiresAt
            if isShorter, isOfStatuses { periods[index].terms = head.terms }
            decide(.end, of: head, \.terms, at: index, isTakenBack: isShorter && !isOfStatuses, end: end)
        }
        return (merged.with(periods), waiting)
    }

    /// Returns whether the last live period ends earlier than it did, and no other one ends as late.
    private static func isShorter(_ index: Int, than head: Period, in periods: [Period]) -> Bool {
        periods[index].expiresAt < head.expiresAt && periods[index].isLive
            && liveHead(of: periods).map { $0.expiresAt < head.expiresAt } ?? false
    }

    /// Returns whether an answer of an instant takes something back for good.
    static func counts(_ said: Instant, after earlier: Instant?, statedAt stated: Instant, policy: Policy) -> Bool {
        earlier.map { said > $0 && said >= stated + standsFor.divided(by: policy.speedup) } ?? false
    }

    private static func liveHead(of periods: [Period]) -> Period? {
        periods.filter { !$0.isUpgraded && $0.cancelledAt == nil }
            .reduce(nil) { known, period in
                guard let known, known.endsAfter(period) else { return period }
                return known
            }
    }
}

extension SubscriptionEvidence {
    /// Returns whether a transaction inside statuses states these terms.
    fileprivate func statesInStatuses(_ terms: Fact<Terms>) -> Bool {
        transactions.contains { $0.source == .statuses && $0.path == terms.path && $0.asOf == terms.asOf }
    }

    /// Returns whether it states fewer refunded seats than were known of a period that was not taken back as a whole.
    fileprivate func takesBackSeats(of known: Period, in merged: Period) -> Bool {
        guard merged.losesSeats(of: known) else { return false }
        return transactions.contains { row in
            row.source != .statuses && row.asOf == merged.saleSaid.asOf
                && merged.transactionIDs.contains(row.transactionID)
                && row.sale?.seats?.revoked ?? 0 < known.refundedSeats
        }
    }
}

extension Period {
    /// What was said of its sale.
    fileprivate var saleSaid: Fact<Sale> {
        get { details.sale ?? Fact(Sale(), origin: .unspoken) }
        set { details.sale = newValue }
    }

    fileprivate var refundedSeats: Int { details.sale?.value.seats?.revoked ?? 0 }

    /// Returns whether it has fewer refunded seats than were known, although nothing of it was taken back as a whole.
    fileprivate func losesSeats(of known: Period) -> Bool {
        cancelledAt == nil && known.cancelledAt == nil && refundedSeats < known.refundedSeats
    }

    /// Keeps the revocation with the mark of a period that moved: it comes back with its refund, or without one, as a whole.
    fileprivate mutating func keepMove(of known: Period) {
        if known.movedTo != nil, upgrade == known.upgrade { revocation = known.revocation }
    }

    /// Keeps what was known of its sale, where its newest row lacks refunded seats, or the kind of a revocation that stands,
    /// and cannot take them back.
    fileprivate mutating func keepSale(of known: Period) {
        let losesKind =
            cancelledAt != nil && revocation.value == known.revocation.value
            && details.sale?.value.revocationType == nil && known.details.sale?.value.revocationType != nil
        if losesKind || losesSeats(of: known) { details.sale = known.details.sale }
    }

    /// Whether it was replaced by another one without a refund of the rest of its price, and did not move.
    fileprivate func isMerelyReplaced(at replacedAt: Instant?) -> Bool {
        isUpgraded && movedTo == nil && restRefundedAt(replacedAt: replacedAt) == nil
    }

    /// Keeps what part of the price was repaid as long as the repayment of its date stands, also one that waits for a second
    /// answer that takes it back.
    fileprivate mutating func keepShare(of known: Period, isRestGone: Bool) {
        guard movedTo == nil, known.movedTo == nil else { return }
        let share = known.details.revocationPercentage
        if isRestGone, revocation == known.revocation { details.revocationPercentage = share }
        details.revocationPercentage = revocation.share(
            details.revocationPercentage, knownBeside: known.revocation, share)
    }

    /// Returns whether it moved to another subscription and is back; or is elsewhere, and who paid has access again, because
    /// its refund there was taken back.
    fileprivate func givesAccessAgain(after known: Period, by slice: SubscriptionEvidence) -> Bool {
        if known.movedTo != nil, movedTo == nil { return true }
        guard let ended = details.replacedBy, slice.replacedBy == nil, ended.asOf < slice.asOf else { return false }
        return slice.transactions.contains { $0.statesMove && transactionIDs.contains($0.transactionID) }
    }
}

/// Something of Apple's own words that a newer answer takes back. It waits for a second answer.
package struct Retraction: Sendable, Hashable {
    /// What is taken back.
    package enum What: String, Sendable, Hashable {
        /// The end of the period.
        case end
        /// Its refund or revocation.
        case revocation
        /// That another row replaced it.
        case upgrade
        /// That some of its seats were refunded.
        case seats
    }

    /// A transaction of the period.
    package var transactionID: TransactionID
    /// What is taken back.
    package var what: What
    /// The earlier end that is given in place of the known one; nil for anything else.
    package var end: Instant?
    /// The instant of the first answer that took it back.
    package var since: Instant

    package init(of transactionID: TransactionID, _ what: What, end: Instant? = nil, since: Instant) {
        (self.transactionID, self.what, self.end, self.since) = (transactionID, what, end, since)
    }
}

/// That an answer takes something back which waits for a second answer.
package struct Doubt: Sendable, Hashable {
    /// The instant of the first answer that takes it back.
    package let since: Instant
    /// The instant of this one.
    package let saidAt: Instant

    /// Whether this answer is the first one.
    package var isNew: Bool { saidAt == since }
}

extension SubscriptionState {
    /// What an answer takes back that waits for a second answer.
    package func doubts(in slice: SubscriptionEvidence) -> [Doubt] {
        retractions.flatMap { retraction -> [Doubt] in
            let period = facts.periods.first { $0.transactionIDs.contains(retraction.transactionID) }
            return slice.transactions.filter { row in
                switch row.source {
                case .deviceReceipt, .statuses: false
                case .latestReceiptInfo, .signedText:
                    row.asOf >= retraction.since && period?.transactionIDs.contains(row.transactionID) ?? false
                }
            }.map { Doubt(since: retraction.since, saidAt: $0.asOf) }
        }
    }
}

extension SubscriptionFacts {
    /// Returns the same facts with other periods.
    func with(_ periods: [Period]) -> SubscriptionFacts {
        SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: asOf, periods: periods, renewal: renewal)
    }
}

extension SubscriptionState {
    /// Returns the same state under another version.
    func with(version: Int64) -> SubscriptionState {
        SubscriptionState(copying: self, version: version)
    }
}

/// The kind of change, as named in the feed.
package enum EventKind: String, Sendable, Hashable, CaseIterable {
    /// A subscription was seen for the first time.
    case subscriptionStarted = "subscription.started"
    /// A subscription that begins with a trial was seen for the first time.
    case trialStarted = "trial.started"
    /// A period follows a trial.
    case trialConverted = "trial.converted"
    /// The next period is booked.
    case subscriptionRenewed = "subscription.renewed"
    /// The next period is booked after a billing problem.
    case subscriptionRecovered = "subscription.recovered"
    /// The customer came back after a lapse.
    case subscriptionReactivated = "subscription.reactivated"
    /// The subscription is over; `detail.reason` says why.
    case subscriptionExpired = "subscription.expired"
    /// A trial ended without becoming a subscription.
    case trialExpired = "trial.expired"
    /// The customer turned renewal off.
    case autoRenewDisabled = "auto_renew.disabled"
    /// The customer turned renewal on.
    case autoRenewEnabled = "auto_renew.enabled"
    /// Billing failed, without grace.
    case billingRetryEntered = "billing.retry_entered"
    /// Billing failed, with grace.
    case billingGraceEntered = "billing.grace_entered"
    /// Grace ended unpaid.
    case billingGraceExpired = "billing.grace_expired"
    /// Another product took over.
    case productChanged = "product.changed"
    /// Another product will renew.
    case productChangeScheduled = "product.change_scheduled"
    /// The same product will renew after all.
    case productChangeWithdrawn = "product.change_withdrawn"
    /// The customer was asked to agree to a higher price.
    case priceIncreasePending = "price_increase.pending"
    /// The customer agreed, or was informed.
    case priceIncreaseAccepted = "price_increase.accepted"
    /// Apple refunded a period.
    case refundGranted = "refund.granted"
    /// Apple took a refund back.
    case refundReversed = "refund.reversed"
    /// Access to a period or a one-time purchase ended for which another customer paid.
    case familyRevoked = "family.revoked"
    /// A known period ends later than it did.
    case subscriptionExtended = "subscription.extended"
    /// A known period ends earlier than it did.
    case subscriptionShortened = "subscription.shortened"
    /// A one-time purchase was seen for the first time.
    case purchaseMade = "purchase.made"
    /// A one-time purchase was refunded.
    case purchaseRefunded = "purchase.refunded"
    /// A subscription or purchase got its first owner; emitted by the ledger.
    case ownershipAssigned = "ownership.assigned"
    /// A subscription or purchase changed its owner; emitted by the ledger.
    case ownershipTransferred = "ownership.transferred"
    /// What a customer may use changed by hand, or because another customer took something over; emitted by the ledger.
    case entitlementsChanged = "entitlements.changed"
}

/// A value in an event's detail.
package enum DetailValue: Sendable, Hashable {
    /// Text; instants are ISO 8601.
    case text(String)
    /// A count.
    case integer(Int64)
    /// Yes or no.
    case flag(Bool)
}

/// One change, as consumers see it.
package struct Event: Sendable, Hashable {
    /// What happened.
    package var kind: EventKind
    /// The product that the event is about.
    package var productID: ProductID
    /// The instant Apple gives, never later than `as_of`; for a switch `as_of` itself, with `detail.not_before`.
    package var occurredAt: Instant
    /// Further details, by snake_case key.
    package var detail: [String: DetailValue]

    package init(kind: EventKind, productID: ProductID, occurredAt: Instant, detail: [String: DetailValue] = [:]) {
        self.kind = kind
        self.productID = productID
        self.occurredAt = occurredAt
        self.detail = detail
    }
}
