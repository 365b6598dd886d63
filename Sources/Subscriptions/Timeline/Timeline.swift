/// A stretch of time in which the verdict is the same.
package struct Span: Sendable, Hashable {
    /// When it starts.
    package var from: Instant
    /// When it ends; nil for never.
    package var to: Instant?
    /// The state.
    package var state: State
    /// Why, for expired, revoked and awaiting.
    package var reason: Reason?
    /// Whether access is given.
    package var entitled: Bool
    /// The product.
    package var productID: ProductID
    /// Apple's expiry of the last period charged.
    package var expiresAt: Instant
    /// When access ends if nothing more is learnt; nil without access.
    package var entitledUntil: Instant?
    /// Sorted.
    package var flags: [Flag]

    /// A span of a verdict.
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

    /// Whether the instant lies in it.
    package func contains(_ instant: Instant) -> Bool {
        from <= instant && to.map { instant < $0 } ?? true
    }

    /// Whether both say the same, whenever.
    package func saysTheSame(as other: Span) -> Bool {
        var moved = other
        moved.from = from
        moved.to = to
        return self == moved
    }
}

/// A subscription's whole life, from its first period to infinity, on the assumption that nothing more is learnt.
///
/// Spans follow each other without gap; the last has no end.
package struct Timeline: Sendable, Hashable {
    /// In order.
    package let spans: [Span]

    /// The timeline of the facts: their verdict at every instant.
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

    /// The span that contains the instant; nil before the first.
    package func span(at instant: Instant) -> Span? {
        index(at: instant).map { spans[$0] }
    }

    /// The index of the span that contains the instant, by bisection; nil before the first.
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
