extension StateChange {
    /// Ends and failures: what the new timeline says of the instant of the previous answer where it differs from what
    /// was said then, and every boundary since.
    var spanDrafts: [Draft] {
        let spans = after.timeline.spans
        let first = after.timeline.index(at: before.asOf) ?? 0
        guard spans.indices.contains(first), var known = before.timeline.span(at: before.asOf)?.state else { return [] }
        let bridged = bridgedSpans
        var drafts: [Draft] = []
        for index in first..<spans.count {
            let span = spans[index]
            if index > first && span.from > after.asOf { break }
            if !bridged.contains(index) {
                drafts += transition(from: known, to: span, isRevision: index == first)
            }
            known = span.state
        }
        return drafts
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
            case .gracePeriod: return [graceExpired(span, detail, isRevision: isRevision)]
            case .active, .awaitingRenewal, .expired, .revoked:
                return [draft(.billingRetryEntered, span.productID, at: span.expiresAt, detail)]
            }
        case .expired:
            return old == .expired ? [] : expired(from: old, span, isRevision: isRevision)
        }
    }

    private func graceExpired(_ span: Span, _ detail: [String: DetailValue], isRevision: Bool) -> Draft {
        guard isRevision else { return draft(.billingGraceExpired, span.productID, at: span.from, detail) }
        guard let end = before.timeline.span(at: before.asOf)?.entitledUntil, end <= after.asOf else {
            return switched(.billingGraceExpired, span.productID, detail)
        }
        return draft(.billingGraceExpired, span.productID, at: end, detail)
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
            return [graceExpired(span, detail, isRevision: isRevision)]
        case .billingRetry, .revoked:
            return [switched(kind, span.productID, detail)]
        }
    }
}
