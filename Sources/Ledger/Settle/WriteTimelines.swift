import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Closes and inserts the spans of the timelines that changed.
    func writeTimelines(of drafts: [SubscriptionDraft], in transaction: Transaction) throws {
        let changes = drafts.compactMap { draft in draft.timelineChange.map { (draft: draft, change: $0) } }
        let closed = changes.flatMap { entry in entry.change.closed.map { (entry.draft, $0) } }
        if !closed.isEmpty {
            try transaction.query(
                Queries.closeSpans,
                [
                    .int8s(closed.map(\.0.rowID)), .instants(closed.map(\.1)),
                    .timestamptzs(closed.map(\.0.recordedMicroseconds)),
                ])
        }
        let opened = changes.flatMap { entry in entry.change.opened.map { SpanRow(draft: entry.draft, span: $0) } }
        guard !opened.isEmpty else { return }
        try transaction.query(Queries.insertSpans, rows: opened)
    }
}

extension SubscriptionDraft {
    /// How the stored timeline changes; nil when nothing was folded.
    var timelineChange: TimelineChange? {
        guard wasChecked, let state else { return nil }
        return TimelineChange(
            from: storedSpans, to: state.storedSpans(outageAllowance: policy?.outageAllowance ?? .zero))
    }
}

/// A present span of a timeline as a row of `insert_spans`.
struct SpanRow {
    let draft: SubscriptionDraft
    let span: StoredSpan
}

extension SpanRow: ColumnarRow {
    static let columns: [Column<SpanRow>] = [
        .int8("subscription_id", \.draft.rowID),
        .instant("valid_from", \.span.from),
        .instant("valid_to", \.span.to),
        .microseconds("recorded_at", \.draft.recordedMicroseconds),
        .text("state", \.span.state.rawValue),
        .text("reason", \.span.reason?.rawValue),
        .bool("entitled", \.span.entitled),
        .text("product_id", \.span.productID.text),
        .text("flags") { $0.span.flags.map(\.rawValue).joined(separator: ",") },
        .instant("allowed_until", \.span.allowedUntil),
        .int8("version", \.draft.version),
    ]
}
