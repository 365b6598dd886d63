extension StateChange {
    /// Ends and failures: the difference between the new and the old timeline at the instant of the previous answer,
    /// and every boundary since then.
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

    /// The outcome of a period whose refund was reversed, if no later period decides. It comes after the reversal and
    /// is dated by the newest answer, because the period was known as revoked until then.
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

    /// The spans in a gap that a later period closes soon enough to count as a renewal.
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

    /// Reports an unpaid end of grace as such, even if Apple makes no further attempt to charge.
    private func expired(from old: State, _ span: Span, isRevision: Bool) -> [Draft] {
        var detail: [String: DetailValue] = ["expires_at": .text(span.expiresAt.iso8601)]
        if let reason = span.reason { detail["reason"] = .text(reason.rawValue) }
        if let successor = after.facts.periods.last(where: { $0.expiresAt == span.expiresAt })?.movedTo {
            detail["moved_to"] = .text(successor.text)
        }
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

    /// Reports that Apple stopped charging. Apple gives no instant for that, so the event has the instant of the newest
    /// answer, or of the span that followed. If a refund followed, only the refund is reported.
    private func failureEnded(_ kind: EventKind, _ span: Span, _ detail: [String: DetailValue]) -> [Draft] {
        let end = latest(in: span)
        if span.to == end, after.timeline.span(at: end)?.state == .revoked { return [] }
        return [switched(kind, span.productID, detail, by: end)]
    }

    /// Returns the end of the span, or the newest answer's instant if that comes first.
    private func latest(in span: Span) -> Instant { min(span.to ?? after.asOf, after.asOf) }
}
