import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Returns when the poller of a subscription was last swept, where a trusted notification reported the change: refund
    /// checks count from then. Nil where they count from now.
    func trustedSweep(of draft: SubscriptionDraft, _ policy: Policy) -> Instant? {
        guard draft.wasReported, policy.trustsNotifications(about: draft.polling.seed) else { return nil }
        return draft.polling.poller.flatMap { pollers?.schedules[$0]?.sweptAt }
    }

    /// Moves the checks on that would have asked for what trusted notifications reported.
    func postponeReported(in transaction: Transaction) throws {
        let moved = subscriptions.values.compactMap { draft -> Postponement? in
            guard let policy = draft.policy, trustedSweep(of: draft, policy) != nil else { return nil }
            return draft.polling.postponement(lane: { lane(of: .at($0), polled: [draft]) })
        }.sorted { $0.receipt < $1.receipt }
        guard !moved.isEmpty else { return }
        try transaction.query(
            Queries.postpone,
            [
                .int8s(moved.map(\.receipt.number)), .instants(moved.map(\.plannedAt)),
                .instants(moved.map(\.nextAt)), .texts(moved.map(\.lane.rawValue)),
            ])
    }
}

/// A check that moves to a later instant.
struct Postponement: Sendable {
    let receipt: ReceiptID
    let plannedAt: Instant
    let nextAt: Instant
    let lane: Lane
}
