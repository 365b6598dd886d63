extension StateChange {
    /// Ends and failures: what the new timeline says of the instant of the previous answer where it differs from what
    /// was said then, and every boundary since.
    var spanDrafts: [Draft] {
        let spans = after.timeline.spans
        let first = after.timeline.index(at: before.asOf) ?? 0
        guard spans.indices.contains(first), var known = before.timeline.span(at: before.asOf)?.state else { return [] }
        let (bridged, uncoveredEnd) = (bridgedSpans, uncoveredEnd)
        var drafts: [Draft] = []
        for index in first..<spans.count {
            let span = spans[index]
            if index > first && span.from > after.asOf { break }
            if !bridged.contains(index), span.expiresAt != uncoveredEnd {
                drafts += transition(from: known, to: span, isRevision: index == first)
            }
            known = span.state
        }
        return drafts
    }

    /// What became of a period whose refund was reversed, where it is the last word: told after the reversal and as of the
    /// newest answer, for until then it was known as revoked.
    var uncoveredDrafts: [Draft] {
        guard let span = after.timeline.span(at: after.asOf), span.expiresAt == uncoveredEnd else { return [] }
        return transition(from: .revoked, to: span, isRevision: true).map {
            switched($0.event.kind, $0.event.productID, $0.event.detail)
        }
    }

    /// The expiry of the period that was revoked at the previous answer and now turns out not to have been.
    private var uncoveredEnd: Instant? {
        guard let old = before.timeline.span(at: before.asOf), old.state == .revoked,
            after.timeline.span(at: before.asOf)?.state != .revoked
        else { return nil }
        return old.expiresAt
    }

    /// The spans that lie in a gap which a later period closes soon enough to count as a renewal.
    private var bridgedSpans: Set<Int> {
        let spans = after.timeline.spans
        let active = spans.indices.filter { spans[$0].state == .active }
        return zip(active, active.dropFirst()).reduce(into: []) { bridged, ends in
            let (last, next) = ends
            guard next > last + 1, spans[next].from - spans[last + 1].from <= policy.lateRenewalTolerance else {
                return
            }
            bridged.formUnion(last + 1..<next)
        }
    }

    private func transition(from old: State, to span: Span, isRevision: Bool) -> [Draft] {
        let detail: [String: DetailValue] = ["expires_at": .text(span.expiresAt.iso8601)]
        switch span.state {
        case .active, .awaitingRenewal, .revoked:
            return []
        case .gracePeriod:
            guard old != .gracePeriod else { return [] }
            let until = span.entitledUntil.map { ["grace_expires_at": DetailValue.text($0.iso8601)] } ?? [:]
            return [draft(.billingGraceEntered, span.productID, at: span.expiresAt, detail.merging(until) { $1 })]
        case .billingRetry:
            switch old {
            case .billingRetry: return []
            case .gracePeriod: return graceExpired(span, detail, isRevision: isRevision)
            case .active, .awaitingRenewal, .expired, .revoked:
                return [draft(.billingRetryEntered, span.productID, at: span.expiresAt, detail)]
            }
        case .expired:
            return old == .expired ? [] : expired(from: old, span, isRevision: isRevision)
        }
    }

    private func graceExpired(_ span: Span, _ detail: [String: DetailValue], isRevision: Bool) -> [Draft] {
        guard isRevision else { return [draft(.billingGraceExpired, span.productID, at: span.from, detail)] }
        if let end = before.timeline.span(at: before.asOf)?.entitledUntil, end <= latest(in: span) {
            return [draft(.billingGraceExpired, span.productID, at: end, detail)]
        }
        return failureEnded(.billingGraceExpired, span, detail)
    }

    /// Grace over unpaid is told as such, even where nothing more is tried.
    private func expired(from old: State, _ span: Span, isRevision: Bool) -> [Draft] {
        var detail: [String: DetailValue] = ["expires_at": .text(span.expiresAt.iso8601)]
        if let reason = span.reason { detail["reason"] = .text(reason.rawValue) }
        let kind: EventKind = span.flags.contains(.trial) ? .trialExpired : .subscriptionExpired
        switch old {
        case .active, .awaitingRenewal, .expired:
            return [draft(kind, span.productID, at: span.expiresAt, detail)]
        case .gracePeriod:
            return graceExpired(span, detail, isRevision: isRevision)
        case .billingRetry, .revoked:
            return failureEnded(kind, span, detail)
        }
    }

    /// Apple gave up at an instant it does not give: told as of the newest answer, or of what followed. A refund that
    /// followed tells it alone.
    private func failureEnded(_ kind: EventKind, _ span: Span, _ detail: [String: DetailValue]) -> [Draft] {
        let end = latest(in: span)
        if span.to == end, after.timeline.span(at: end)?.state == .revoked { return [] }
        return [switched(kind, span.productID, detail, by: end)]
    }

    /// The end of the span, or the newest answer where that comes first.
    private func latest(in span: Span) -> Instant { min(span.to ?? after.asOf, after.asOf) }
}
