import Postgres
import Subscriptions

/// An open row of a stored timeline.
struct StoredSpan: Sendable, Hashable {
    let span: Span
    let heldUntil: Instant?

    init(span: Span, heldUntil: Instant?) {
        self.span = span
        self.heldUntil = heldUntil
    }

    init(row: Row) throws {
        span = Span(
            from: try row.instant("valid_from"), to: try row.instantIfPresent("valid_to"), state: try row.word("state"),
            reason: try row.wordIfPresent("reason"), entitled: try row.bool("entitled"),
            productID: ProductID(try row.text("product_id")), flags: try row.texts("flags").map { try flag($0) })
        heldUntil = try row.instantIfPresent("held_until")
    }
}

/// What has to be written so that a stored timeline says what is known now.
struct TimelineChange: Sendable, Hashable {
    /// Starts of open rows that are no longer true.
    let closed: [Instant]
    /// Rows that say what is true instead.
    let opened: [StoredSpan]

    init(from stored: [StoredSpan], to current: [StoredSpan]) {
        let (before, after) = (Set(stored), Set(current))
        closed = stored.filter { !after.contains($0) }.map(\.span.from)
        opened = current.filter { !before.contains($0) }
    }
}

private func flag(_ word: String) throws -> Flag {
    guard let flag = Flag(rawValue: word) else {
        throw LedgerError(.mismatch, "The timeline holds the unknown flag \(word); run a newer perennial.")
    }
    return flag
}
