import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Closes and inserts the spans of the timelines that changed.
    func writeTimelines(of drafts: [SubscriptionDraft], in transaction: Transaction) throws {
        let changes = drafts.compactMap { draft in
            draft.state.map { state in
                (
                    draft: draft,
                    change: TimelineChange(
                        from: draft.storedSpans,
                        to: state.storedSpans(outageAllowance: draft.policy?.outageAllowance ?? .zero))
                )
            }
        }
        let closed = changes.flatMap { entry in entry.change.closed.map { (entry.draft, $0) } }
        if !closed.isEmpty {
            try transaction.query(
                Queries.closeSpans,
                [
                    .int8s(closed.map(\.0.rowID)), .instants(closed.map(\.1)),
                    .timestamptzs(closed.map(\.0.recordedMicroseconds)),
                ])
        }
        let opened = changes.flatMap { entry in entry.change.opened.map { (entry.draft, $0) } }
        guard !opened.isEmpty else { return }
        try transaction.query(
            Queries.insertSpans,
            [
                .int8s(opened.map(\.0.rowID)), .instants(opened.map(\.1.from)), .instants(opened.map(\.1.to)),
                .timestamptzs(opened.map(\.0.recordedMicroseconds)), .texts(opened.map(\.1.state.rawValue)),
                .texts(opened.map(\.1.reason?.rawValue)), .bools(opened.map(\.1.entitled)),
                .texts(opened.map(\.1.productID.text)),
                .texts(opened.map { $0.1.flags.map(\.rawValue).joined(separator: ",") }),
                .instants(opened.map(\.1.allowedUntil)), .int8s(opened.map(\.0.version)),
            ])
    }
}
