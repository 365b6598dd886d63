extension StateChange {
    /// Ends and failures: what the new timeline says of the instant of the previous answer where it differs from what
    /// was said then, and every boundary since.
    var spanDrafts: [Draft] {
        let spans = after.timeline.spans
        let first = after.timeline.index(at: before.asOf) ?? 0
        guard spans.indices.contains(first), var known = before.timeline.span(at: before.asOf)?.state else { return [] }
        var drafts: [Draft] = []
        for index in first..<spans.count {
            let span = spans[index]
            if index > first && span.from > after.asOf { break }
            if !isBridged(index, spans) {
                drafts += transition(from: known, to: span, isRevision: index == first)
            }
            known = span.state
        }
        return drafts
    }

    /// Whether the span lies in a gap that a later period closes soon enough to count as a renewal.
    private func isBridged(_ index: Int, _ spans: [Span]) -> Bool {
        guard spans[index].state != .active,
            let next = spans[index...].firstIndex(where: { $0.state == .active }),
            let last = spans[..<index].lastIndex(where: { $0.state == .active })
        else { return false }
        return spans[next].from - spans[last + 1].from <= policy.lateRenewalTolerance
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
            case .gracePeriod: return [graceExpired(span, isRevision: isRevision)]
            case .active, .awaitingRenewal, .expired, .revoked:
                return [draft(.billingRetryEntered, span.productID, at: span.expiresAt, detail)]
            }
        case .expired:
            return old == .expired ? [] : expired(from: old, span, isRevision: isRevision)
        }
    }

    private func graceExpired(_ span: Span, isRevision: Bool) -> Draft {
        let known = before.timeline.span(at: before.asOf)
        let end = isRevision ? known?.entitledUntil ?? after.asOf : span.from
        return draft(.billingGraceExpired, span.productID, at: end)
    }

    private func expired(from old: State, _ span: Span, isRevision: Bool) -> [Draft] {
        var detail: [String: DetailValue] = ["expires_at": .text(span.expiresAt.iso8601)]
        if let reason = span.reason { detail["reason"] = .text(reason.rawValue) }
        let kind: EventKind = span.flags.contains(.trial) ? .trialExpired : .subscriptionExpired
        switch old {
        case .active, .awaitingRenewal, .expired:
            return [draft(kind, span.productID, at: span.expiresAt, detail)]
        case .gracePeriod where !isRevision:
            return [graceExpired(span, isRevision: false), draft(kind, span.productID, at: span.from, detail)]
        case .gracePeriod:
            return [graceExpired(span, isRevision: true), switched(kind, span.productID, detail)]
        case .billingRetry, .revoked:
            return [switched(kind, span.productID, detail)]
        }
    }
}
