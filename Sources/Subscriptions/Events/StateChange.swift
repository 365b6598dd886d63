/// The changes between two states of a subscription, as events in order.
struct StateChange {
    let before: SubscriptionState
    let after: SubscriptionState
    /// The newest instant that Apple spoke for: that of the evidence, or of an earlier answer.
    let saidAt: Instant
    let policy: Policy

    init(before: SubscriptionState, after: SubscriptionState, saidAt: Instant, policy: Policy) {
        (self.before, self.after, self.policy) = (before, after, policy)
        self.saidAt = max(after.asOf, saidAt)
    }

    /// An event and the instant that orders it among the others.
    struct Draft {
        let anchor: Instant
        let event: Event
    }

    /// Every event, once, ordered by instant; at the same instant an end comes before its successor.
    var events: [Event] {
        let drafts = spanDrafts + periodDrafts + uncoveredDrafts + renewalDrafts
        return drafts.enumerated()
            .sorted { ($0.element.anchor, $0.offset) < ($1.element.anchor, $1.offset) }
            .map(\.element.event)
    }

    /// Returns a draft for an instant that Apple gives.
    func draft(
        _ kind: EventKind, _ productID: ProductID, at instant: Instant, _ detail: [String: DetailValue] = [:]
    ) -> Draft {
        let occurredAt = min(instant, saidAt)
        return Draft(
            anchor: occurredAt,
            event: Event(kind: kind, productID: productID, occurredAt: occurredAt, detail: detail))
    }

    /// Returns a draft for a switch. Apple reports that it happened but not when: at the latest by the newest answer,
    /// or by the event that followed.
    func switched(
        _ kind: EventKind, _ productID: ProductID, _ detail: [String: DetailValue] = [:], by latest: Instant? = nil
    ) -> Draft {
        var detail = detail
        detail["not_before"] = .text(before.asOf.iso8601)
        return draft(kind, productID, at: latest ?? saidAt, detail)
    }
}

extension StateChange {
    /// Ends and failures: where both timelines differ at the previous answer, and every boundary since then.
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
        case .active, .awaitingRenewal, .revoked: return []
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
        case .expired: return old == .expired ? [] : expired(from: old, span, isRevision: isRevision)
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
        let successor = after.facts.periods.last { $0.expiresAt == span.expiresAt }?.movedTo
        if let successor { detail["moved_to"] = .text(successor.text) }
        let kind: EventKind = span.flags.contains(.trial) ? .trialExpired : .subscriptionExpired
        switch old {
        case .active, .awaitingRenewal, .expired:
            return [draft(kind, span.productID, at: span.expiresAt, detail)]
        case .gracePeriod where successor == nil:
            return graceExpired(span, detail, isRevision: isRevision)
        // Grace goes on with a period that moved.
        case .gracePeriod, .billingRetry, .revoked:
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

extension StateChange {
    /// Events of new periods, in order of purchase, and of changes in known periods.
    var periodDrafts: [Draft] {
        let known = knownPeriods
        // A next period charged ahead of time does not turn an older new period into a backfill.
        let lastKnownStart = before.facts.periods.last { $0.purchasedAt <= before.asOf }?.purchasedAt ?? before.asOf
        let replacements = Replacement.instants(in: after.facts.periods)
        var drafts: [Draft] = []
        for (index, period) in after.facts.periods.enumerated() {
            if let old = known[index] {
                drafts += termDrafts(old, period)
            } else {
                let isBackfill = period.purchasedAt < lastKnownStart
                drafts += isOfKnown(index, known) ? [] : newPeriod(index, isBackfill: isBackfill)
            }
            drafts += revocationDrafts(known[index], period, replacedAt: replacements[index])
        }
        return drafts
    }

    /// The previously known versions of the current periods, by index among the current periods.
    var knownPeriods: [Int: Period] {
        let match = PeriodMatch(after.facts.periods)
        return before.facts.periods.reduce(into: [:]) { known, period in
            guard let index = match.index(of: period) else { return }
            known[index] = known[index].map { $0.asOf < period.asOf ? period : $0 } ?? period
        }
    }

    private func termDrafts(_ old: Period, _ new: Period) -> [Draft] {
        guard old.expiresAt != new.expiresAt, new.cancelledAt == nil, !new.isUpgraded else { return [] }
        var detail = new.eventDetail
        detail["previous_expires_at"] = .text(old.expiresAt.iso8601)
        let kind: EventKind = new.expiresAt > old.expiresAt ? .subscriptionExtended : .subscriptionShortened
        return [switched(kind, new.productID, detail)]
    }

    /// Reports a replaced period as refunded only if Apple refunded the rest of its price.
    private func revocationDrafts(_ old: Period?, _ period: Period, replacedAt: Instant?) -> [Draft] {
        var detail = period.eventDetail
        if let reason = period.revocation.value.reason ?? old?.revocation.value.reason {
            detail["reason"] = .text(reason)
        }
        let wasRefunded = old?.refundedAt(replacedAt: replacedAt) != nil
        guard let refundedAt = period.refundedAt(replacedAt: replacedAt) else {
            // A refunded period that turns out to be replaced was never refunded. A refund goes with a period that moves.
            let isReversed =
                wasRefunded && (old?.isUpgraded == true || !period.isUpgraded) && period.movedTo == nil
            return isReversed ? [switched(.refundReversed, period.productID, detail)] : []
        }
        guard !wasRefunded else { return [] }
        let kind: EventKind = period.isShared ? .familyRevoked : .refundGranted
        return [draft(kind, period.productID, at: refundedAt, detail)]
    }

    /// Returns whether a new transaction is of a period that was known, or has been announced already: seats that were added to a
    /// running period, or that renewed with others, are no renewal of their own.
    private func isOfKnown(_ index: Int, _ known: [Int: Period]) -> Bool {
        let period = after.facts.periods[index]
        guard period.isOneOfSeveral else { return false }
        return after.facts.periods.indices.contains { other in
            let companion = after.facts.periods[other]
            return other != index && companion.expiresAt == period.expiresAt && !companion.gaveWay
                && (known[other] != nil || other < index)
        }
    }

    private func newPeriod(_ index: Int, isBackfill: Bool) -> [Draft] {
        let periods = after.facts.periods
        let period = periods[index]
        // It is reported where a newer statement shows it.
        if period.movedTo != nil { return [] }
        var detail = period.eventDetail
        if isBackfill { detail["backfill"] = .flag(true) }
        guard !period.gaveWay, let earlier = periods[..<index].lastIndex(where: { !$0.gaveWay }) else {
            return [draft(.subscriptionRenewed, period.productID, at: period.chargedBy, detail)]
        }
        let before = after.facts.running(beside: earlier)
        let previous = periods[before]
        var drafts: [Draft] = []
        if previous.productID != period.productID {
            var change = detail
            change["from_product_id"] = .text(previous.productID.text)
            change["to_product_id"] = .text(period.productID.text)
            drafts.append(draft(.productChanged, period.productID, at: period.chargedBy, change))
            if after.facts.tookOver(index, previous, policy) { return drafts }
        }
        let kind = kind(of: period, after: before)
        if kind == .subscriptionRenewed || kind == .trialConverted, expiryWasReported(previous) {
            detail["late"] = .flag(true)
        }
        drafts.append(draft(kind, period.productID, at: period.chargedBy, detail))
        return drafts
    }

    private func kind(of period: Period, after index: Int) -> EventKind {
        let (facts, previous) = (after.facts, after.facts.periods[index])
        let gap = period.gap(after: previous, policy)
        // Renewal was off when last seen, or Apple had stopped charging.
        let said = facts.renewalFacts(after: index)
        let renewal = said?.after(previous).said.value ?? before.facts.renewal?.value
        if gap > previous.longestGap(before: period, knowing: renewal, policy)
            || period.wasBought(after: previous, policy)
        {
            return .subscriptionReactivated
        }
        if previous.isTrial { return .trialConverted }
        if hadFailed(said?.said, at: previous.expiresAt) || gap > policy.lateRenewalTolerance {
            return .subscriptionRecovered
        }
        return .subscriptionRenewed
    }

    /// Returns whether the last known fact about a period's end is a billing failure.
    private func hadFailed(_ ending: Fact<Renewal>?, at end: Instant) -> Bool {
        guard let ending, ending.asOf >= end else { return false }
        let intent = ending.value.expirationIntent
        let inGrace = ending.value.graceExpiresAt.map { $0 > ending.asOf } ?? false
        return inGrace || ending.value.isInGraceByStatus == true
            || (ending.value.inBillingRetry == true && (intent == nil || intent == "2"))
    }

    /// Returns whether an event already reported that the subscription expired with this period.
    private func expiryWasReported(_ period: Period) -> Bool {
        guard let span = before.timeline.span(at: before.asOf), span.state == .expired else { return false }
        return span.expiresAt == period.expiresAt
    }
}

extension Period {
    /// When the period was refunded or revoked; nil if it was not, or if it was merely replaced.
    fileprivate func refundedAt(replacedAt: Instant?) -> Instant? {
        isUpgraded ? restRefundedAt(replacedAt: replacedAt) : cancelledAt
    }

    /// The start of the period, or its refund if that came earlier, because the charge precedes the refund.
    fileprivate var chargedBy: Instant { isRefunded ? min(purchasedAt, cancelledAt ?? purchasedAt) : purchasedAt }

    /// Returns the time between two periods. A renewal counts from the expiry, even after a refund.
    fileprivate func gap(after previous: Period, _ policy: Policy) -> Delay {
        let renews = begins(after: previous, policy)
        return purchasedAt - (renews ? previous.expiresAt : previous.accessEnd)
    }
}

extension StateChange {
    /// Customer switches: renewal on and off, scheduled products, price consent. Empty if Apple reported the renewal
    /// for the first time, or nothing newer. The renewal of a period that moved is reported where it is.
    var renewalDrafts: [Draft] {
        guard let old = before.facts.currentRenewal, let new = after.facts.currentRenewal, new.asOf > old.asOf,
            after.lastPeriod?.movedTo == nil, let span = after.timeline.span(at: after.asOf)
        else { return [] }
        var drafts = statusDrafts(new.value, span)
        switch span.state {
        case .active, .gracePeriod, .billingRetry, .awaitingRenewal:
            drafts += productDrafts(old.value, new.value) + priceDrafts(old.value, new.value, span)
        case .expired, .revoked:
            break
        }
        return drafts
    }

    private func statusDrafts(_ new: Renewal, _ span: Span) -> [Draft] {
        guard let was = before.willRenew, let isNow = after.willRenew, was != isNow else { return [] }
        if isNow {
            let cameBack = periodDrafts.contains { $0.event.kind == .subscriptionReactivated }
            return cameBack ? [] : [switched(.autoRenewEnabled, span.productID)]
        }
        // A term that is over ends at once.
        let isOver = span.state == .expired || span.state == .revoked
        return [switched(.autoRenewDisabled, span.productID, isOver ? [:] : takesEffect(new))]
    }

    /// The end of the term of payments that runs, at which the customer's will takes effect; empty outside of a term.
    private func takesEffect(_ renewal: Renewal) -> [String: DetailValue] {
        guard renewal.term?.renews != nil, let ends = after.lastPeriod?.payment?.termEndsAt else { return [:] }
        return ["takes_effect_at": .text(ends.iso8601)]
    }

    /// Reports another product, or another way to pay, for what follows; one that takes the place of another is scheduled
    /// without a word of the other.
    private func productDrafts(_ old: Renewal, _ new: Renewal) -> [Draft] {
        guard let oldLast = before.lastPeriod, let last = after.lastPeriod, new.concerns(last.productID) else {
            return []
        }
        let head = last.productID
        let (was, isNow) = (old.change(from: oldLast.productID), new.change(from: head))
        let wasPlan = was == nil ? old.planChange(from: oldLast) : nil
        let plan = isNow == nil ? new.planChange(from: last) : nil
        let tookPlace = was.map(isNew) ?? false
        func detail(_ product: ProductID, _ plan: String?) -> [String: DetailValue] {
            var detail = ["from_product_id": DetailValue.text(head.text), "to_product_id": .text(product.text)]
            if let plan { detail["to_plan"] = .text(plan) }
            return detail
        }
        if isNow != nil || plan != nil {
            guard isNow != was || plan != wasPlan || tookPlace else { return [] }
            let scheduled = detail(isNow ?? head, plan).merging(takesEffect(new)) { $1 }
            return [switched(.productChangeScheduled, head, scheduled)]
        }
        if let was {
            return was == head || tookPlace ? [] : [switched(.productChangeWithdrawn, head, detail(was, nil))]
        }
        // A plan that took place is not withdrawn.
        guard let wasPlan, let present = last.planWord, present != wasPlan else { return [] }
        return [switched(.productChangeWithdrawn, head, detail(head, wasPlan).merging(takesEffect(new)) { $1 })]
    }

    /// Returns whether a period of the product appeared since the previous answer.
    private func isNew(_ product: ProductID) -> Bool {
        let known = knownPeriods
        return after.facts.periods.enumerated().contains { known[$0.offset] == nil && $0.element.productID == product }
    }

    private func priceDrafts(_ old: Renewal, _ new: Renewal, _ span: Span) -> [Draft] {
        if new.awaitsPriceConsent {
            return old.awaitsPriceConsent ? [] : [switched(.priceIncreasePending, span.productID)]
        }
        guard new.acceptsPrice, !old.acceptsPrice || old.awaitsPriceConsent else { return [] }
        return [switched(.priceIncreaseAccepted, span.productID)]
    }
}

extension Renewal {
    /// Whether the customer agreed to a higher price, or was informed of one that needs no consent.
    fileprivate var acceptsPrice: Bool { priceConsentStatus == "1" || priceIncreaseStatus == "1" }
}

extension SubscriptionState {
    fileprivate var lastPeriod: Period? { Period.indexOfLast(in: facts.periods).map { facts.periods[$0] } }
}
