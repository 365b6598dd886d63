/// The result of merging one more answer into a subscription.
package struct Reconciled: Sendable, Hashable {
    /// The new state; its version is one higher if `changed`.
    package var state: SubscriptionState
    /// The events, in order.
    package var events: [Event]
    /// Whether anything besides clocks and paths differs, or an event happened.
    package var changed: Bool

    /// Creates a result from its parts.
    package init(state: SubscriptionState, events: [Event], changed: Bool) {
        self.state = state
        self.events = events
        self.changed = changed
    }
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

/// Returns one event for a subscription that was unknown until now, however much history it has.
private func firstSight(of state: SubscriptionState) -> [Event] {
    guard let first = state.facts.periods.first else { return [] }
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
