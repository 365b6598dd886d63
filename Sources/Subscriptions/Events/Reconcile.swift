/// The result of merging one more answer into a subscription.
package typealias Reconciled = Reconciliation<SubscriptionState>
/// The result of merging one more answer into a one-time purchase.
package typealias ReconciledPurchase = Reconciliation<PurchaseState>

/// The result of merging one more answer into what is known.
package struct Reconciliation<Known: Sendable & Hashable>: Sendable, Hashable {
    /// The new state; its version is one higher if `changed`.
    package var state: Known
    /// The events, in order.
    package var events: [Event]
    /// Whether anything besides clocks and paths differs, or an event happened.
    package var changed: Bool
}

/// Merges one more answer into a subscription. A pure function without a clock: the evidence carries Apple's clock. The
/// same evidence again changes nothing and emits no event. docs/lifecycle.md lists the event of each change.
package func reconcile(_ stored: SubscriptionState?, with slice: SubscriptionEvidence, policy: Policy) -> Reconciled {
    guard let stored, !stored.facts.periods.isEmpty else {
        let state = SubscriptionState(
            facts: SubscriptionFacts(slice), policy: policy, version: (stored?.version ?? 0) + 1)
        return Reconciled(state: state, events: firstSight(of: state), changed: true)
    }
    let accepted = RetractionGuard.accept(slice, into: stored, policy: policy)
    let state = SubscriptionState(
        facts: accepted.facts, policy: policy, version: stored.version, retractions: accepted.retractions)
    let events = StateChange(before: stored, after: state, saidAt: slice.asOf, policy: policy).events
    let changed = !events.isEmpty || stored.leeway != state.leeway || !stored.facts.sameMeaning(as: state.facts)
    guard changed else { return Reconciled(state: state, events: [], changed: false) }
    return Reconciled(state: state.with(version: stored.version + 1), events: events, changed: true)
}

/// Merges one more answer likewise, with what is known of its line items under other original transaction ids. A period
/// that comes brings everything that is known of it, as if it had always been here: only what changed since it was
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
    fileprivate func keeping(_ own: SubscriptionState, of arrivals: [Period], policy: Policy) -> SubscriptionState {
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

extension SubscriptionFacts {
    /// Returns the same facts with other periods.
    func with(_ periods: [Period]) -> SubscriptionFacts {
        SubscriptionFacts(originalTransactionID: originalTransactionID, asOf: asOf, periods: periods, renewal: renewal)
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

extension LineItemsElsewhere {
    /// The events of ends and failures.
    private static let ends: Set<EventKind> = [
        .subscriptionExpired, .trialExpired, .billingRetryEntered, .billingGraceEntered, .billingGraceExpired,
    ]

    private func isEnd(_ event: Event, of periods: [Period]) -> Bool {
        periods.contains { event.detail["expires_at"] == .text($0.expiresAt.iso8601) }
    }

    /// Returns whether an event of the subscription as it was known alone counts when periods come: what was known of it ended
    /// by itself before these were last known where they were, or it is seen for the first time.
    func isOwn(_ event: Event, besides arrivals: [Period]) -> Bool {
        switch event.kind {
        // Seats beside those that came are of the same period.
        case .subscriptionStarted, .trialStarted:
            !arrivals.contains { $0.isNamed(in: event) } && !isEnd(event, of: arrivals)
        default: Self.ends.contains(event.kind) && event.occurredAt <= asOf && !isEnd(event, of: arrivals)
        }
    }

    /// Returns whether an event since the periods that came were last known where they were is news. No news is an end of what
    /// was known here until `known`, and the end of a period whose replacement stays where it was: there that is a change of the
    /// product.
    func isNews(_ event: Event, of arrivals: [Period], since known: Instant?, in facts: SubscriptionFacts) -> Bool {
        guard Self.ends.contains(event.kind) else { return true }
        let replaced = facts.periods.filter { $0.details.replacedBy.map { holders.contains($0.value) } ?? false }
        return !isEnd(event, of: replaced)
            && (isEnd(event, of: arrivals) || known.map { $0 < event.occurredAt } ?? true)
    }
}

extension Period {
    /// Returns whether an event is about it.
    fileprivate func isNamed(in event: Event) -> Bool {
        if let id = webOrderLineItemID, event.detail["web_order_line_item_id"] == .text(id.text) { return true }
        return isOneOfSeveral && transactionIDs.contains { event.detail["transaction_id"] == .text($0.text) }
    }
}
