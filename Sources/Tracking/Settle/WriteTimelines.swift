import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    func writeTimelines(of drafts: [SubscriptionDraft], in transaction: Transaction) throws {
        let changes = drafts.compactMap { draft in draft.timelineChange.map { (draft: draft, change: $0) } }
        let closed = changes.flatMap { entry in entry.change.closed.map { (entry.draft, $0) } }
        if !closed.isEmpty {
            try transaction.query(
                Queries.closeSpans, .int8s(closed.map(\.0.rowID)), .instants(closed.map(\.1)),
                .timestamptzs(closed.map(\.0.recordedMicroseconds)))
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
struct SpanRow: ColumnarRow {
    let draft: SubscriptionDraft
    let span: StoredSpan

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

/// A row of a stored timeline: what changes with time, with only the flags of the period itself. What follows from the
/// newest facts alone, such as what the customer has scheduled, is stored with the subscription.
struct StoredSpan: Sendable, Hashable {
    var from: Instant
    var to: Instant?
    var state: State
    var reason: Reason?
    var entitled: Bool
    var productID: ProductID
    var flags: [Flag]
    /// The end of the outage allowance: access goes on until then although this span ends it.
    var allowedUntil: Instant?

    init(_ span: Span) {
        from = span.from
        to = span.to
        state = span.state
        reason = span.reason
        entitled = span.entitled
        productID = span.productID
        flags = span.flags.filter(\.belongsToPeriod)
    }

    init(row: Row) throws {
        from = try row.instant("valid_from")
        to = try row.instantIfPresent("valid_to")
        state = try row.word("state")
        reason = try row.wordIfPresent("reason")
        entitled = try row.bool("entitled")
        productID = try row.id("product_id")
        flags = try row.texts("flags").compactMap(Flag.init(rawValue:))
        allowedUntil = try row.instantIfPresent("allowed_until")
    }

    /// Whether access goes on although its end has passed. SQL: `ledger.is_in_outage_allowance`.
    func isInOutageAllowance(at instant: Instant) -> Bool {
        allowedUntil.map { from <= instant && instant < $0 } ?? false
    }

    func saysTheSame(as other: StoredSpan) -> Bool {
        (state, reason, entitled, productID) == (other.state, other.reason, other.entitled, other.productID)
            && flags == other.flags
    }
}

extension SubscriptionState {
    /// Returns the timeline to store, with the outage allowance on the span that would end access.
    func storedSpans(outageAllowance length: Delay) -> [StoredSpan] {
        var spans: [StoredSpan] = []
        for span in timeline.spans.map(StoredSpan.init) {
            if let last = spans.last, last.saysTheSame(as: span) {
                spans[spans.count - 1].to = span.to
            } else {
                spans.append(span)
            }
        }
        guard outageAllowance.expected, let end = outageAllowance.accessEndsAt, asOf < end else { return spans }
        for index in spans.indices where spans[index].from == end && !spans[index].entitled {
            spans[index].allowedUntil = end + length
        }
        return spans
    }
}

extension Flag {
    /// Whether it describes the period, not what comes next.
    var belongsToPeriod: Bool {
        switch self {
        case .trial, .intro, .promotionalOffer, .offerCode, .familyShared, .assigned: true
        case .futureDated, .priceConsentPending, .changeScheduled: false
        }
    }
}

struct TimelineChange: Sendable, Hashable {
    /// Starts of current rows that are no longer true.
    let closed: [Instant]
    /// Rows that are true instead.
    let opened: [StoredSpan]

    var isEmpty: Bool { closed.isEmpty && opened.isEmpty }

    init(from stored: [StoredSpan], to current: [StoredSpan]) {
        let (before, after) = (Set(stored), Set(current))
        closed = stored.filter { !after.contains($0) }.map(\.from)
        opened = current.filter { !before.contains($0) }
    }
}
