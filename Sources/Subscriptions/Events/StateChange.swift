/// What happened between two states of a subscription, as events in order.
struct StateChange {
    let before: SubscriptionState
    let after: SubscriptionState
    let policy: Policy

    /// An event and the instant by which it is ordered among the others.
    struct Draft {
        let anchor: Instant
        let event: Event
    }

    /// Every event, once, by instant; of the same instant an end comes before what follows it.
    var events: [Event] {
        let drafts = spanDrafts + periodDrafts + uncoveredDrafts + renewalDrafts
        return drafts.enumerated()
            .sorted { ($0.element.anchor, $0.offset) < ($1.element.anchor, $1.offset) }
            .map(\.element.event)
    }

    /// A draft that happened at an instant Apple gives.
    func draft(
        _ kind: EventKind, _ productID: ProductID, at instant: Instant, _ detail: [String: DetailValue] = [:]
    ) -> Draft {
        let occurredAt = min(instant, after.asOf)
        return Draft(
            anchor: occurredAt,
            event: Event(kind: kind, productID: productID, occurredAt: occurredAt, detail: detail))
    }

    /// A draft of a switch: Apple says that it happened, not when; at the latest by the newest answer, or by what followed.
    func switched(
        _ kind: EventKind, _ productID: ProductID, _ detail: [String: DetailValue] = [:], by latest: Instant? = nil
    ) -> Draft {
        var detail = detail
        detail["not_before"] = .text(before.asOf.iso8601)
        return draft(kind, productID, at: latest ?? after.asOf, detail)
    }
}
