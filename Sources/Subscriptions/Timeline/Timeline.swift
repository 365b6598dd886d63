/// A stretch of time with one unchanged verdict.
package struct Span: Sendable, Hashable {
    /// The start.
    package var from: Instant
    /// The end; nil for never.
    package var to: Instant?
    /// The state.
    package var state: State
    /// The reason, for expired, revoked and awaiting renewal.
    package var reason: Reason?
    /// Whether the customer has access.
    package var entitled: Bool
    /// The product.
    package var productID: ProductID
    /// Apple's expiry of the last period charged.
    package var expiresAt: Instant
    /// The end of access if nothing more is learnt; nil without access.
    package var entitledUntil: Instant?
    /// The flags, sorted.
    package var flags: [Flag]

    /// Creates a span from a verdict.
    package init(from: Instant, to: Instant?, verdict: Verdict) {
        self.from = from
        self.to = to
        state = verdict.state
        reason = verdict.reason
        entitled = verdict.entitled
        productID = verdict.productID
        expiresAt = verdict.expiresAt
        entitledUntil = verdict.entitledUntil
        flags = verdict.flags
    }

    /// Returns whether the span contains the instant.
    package func contains(_ instant: Instant) -> Bool {
        from <= instant && to.map { instant < $0 } ?? true
    }

    /// Returns whether both are equal apart from their start and end.
    package func saysTheSame(as other: Span) -> Bool {
        var moved = other
        moved.from = from
        moved.to = to
        return self == moved
    }
}

/// The whole life of a subscription, from its first period to infinity, assuming that nothing more is learnt.
///
/// Spans follow each other without a gap; the last has no end.
package struct Timeline: Sendable, Hashable {
    /// The spans, in order.
    package let spans: [Span]

    /// Creates the timeline of the facts: their verdict at every instant.
    package init(of facts: SubscriptionFacts, policy: Policy) {
        var spans: [Span] = []
        let table = DecisionTable(facts, policy: policy)
        var sweep = DecisionSweep(table)
        for instant in table.boundaries {
            let verdict = table.verdict(of: sweep.view(at: instant), at: instant, explained: false)
            let span = Span(from: instant, to: nil, verdict: verdict)
            if let last = spans.last {
                if last.saysTheSame(as: span) { continue }
                spans[spans.count - 1].to = instant
            }
            spans.append(span)
        }
        self.spans = spans
    }

    /// Returns the span that contains the instant; nil before the first.
    package func span(at instant: Instant) -> Span? {
        index(at: instant).map { spans[$0] }
    }

    /// Returns the index of the span that contains the instant, by bisection; nil before the first.
    func index(at instant: Instant) -> Int? {
        var low = 0
        var high = spans.count
        while low < high {
            let middle = (low + high) / 2
            if spans[middle].from <= instant { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : low - 1
    }
}
