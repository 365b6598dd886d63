/// The changes between two states of a subscription, as events in order.
struct StateChange {
    let before: SubscriptionState
    let after: SubscriptionState
    /// The newest instant that Apple spoke for: that of the evidence, or of an earlier answer.
    let saidAt: Instant
    let policy: Policy

    init(before: SubscriptionState, after: SubscriptionState, saidAt: Instant, policy: Policy) {
        (self.before, self.after, self.policy) = (before, after, policy)
        self.saidAt = max(after.asOf, saidAt)
    }

    /// An event and the instant that orders it among the others.
    struct Draft {
        let anchor: Instant
        let event: Event
    }

    /// Every event, once, ordered by instant; at the same instant an end comes before its successor.
    var events: [Event] {
        let drafts = spanDrafts + periodDrafts + uncoveredDrafts + renewalDrafts
        return drafts.enumerated()
            .sorted { ($0.element.anchor, $0.offset) < ($1.element.anchor, $1.offset) }
            .map(\.element.event)
    }

    /// Returns a draft for an instant that Apple gives.
    func draft(
        _ kind: EventKind, _ productID: ProductID, at instant: Instant, _ detail: [String: DetailValue] = [:]
    ) -> Draft {
        let occurredAt = min(instant, saidAt)
        return Draft(
            anchor: occurredAt,
            event: Event(kind: kind, productID: productID, occurredAt: occurredAt, detail: detail))
    }

    /// Returns a draft for a switch. Apple reports that it happened but not when: at the latest by the newest answer,
    /// or by the event that followed.
    func switched(
        _ kind: EventKind, _ productID: ProductID, _ detail: [String: DetailValue] = [:], by latest: Instant? = nil
    ) -> Draft {
        var detail = detail
        detail["not_before"] = .text(before.asOf.iso8601)
        return draft(kind, productID, at: latest ?? saidAt, detail)
    }
}
