/// Prevents a lagging replica at Apple from taking back what Apple said itself: a refund, of seats too, an upgrade mark,
/// or the end of the last live period, which moves back without a cancellation or upgrade. A period that moved to another
/// subscription is marked as refunded and upgraded at its start, so that it comes back likewise. A refund of the rest of
/// a replaced period's price is taken back where the replacement's own repayment is stated again.
///
/// What is taken back stays until a second answer takes it back too, ten minutes after the newest statement of it at the
/// earliest. A statement that arrives after a newer answer that takes it back counts as if it had come first, if that answer
/// is less than ten minutes newer. A transaction inside statuses takes nothing back. Both channels list every period with
/// its refund, mark and end, so either may take back what the other one stated.
struct RetractionGuard {
    private let stored: SubscriptionState
    private let policy: Policy
    private var periods: [Period]
    /// What the answer alone says of the periods of which something newer is known, by index.
    private var said: [Int: Period] = [:]
    private var waiting: [Retraction] = []

    /// How long the newest statement of what is taken back stands at least.
    private static let standsFor = Delay.minutes(10)

    /// Returns whether two answers take something back for good, whichever of them arrived first.
    static func counts(_ denial: Instant, with other: Instant?, statedAt stated: Instant, policy: Policy) -> Bool {
        other.map { $0 != denial && max($0, denial) >= stated + standsFor.divided(by: policy.speedup) } ?? false
    }

    /// Returns whether a statement stands although a newer answer, which arrived before, takes it back.
    static func stands(_ stated: Instant, against denial: Instant, policy: Policy) -> Bool {
        stated < denial && denial < stated + standsFor.divided(by: policy.speedup)
    }

    static func accept(
        _ slice: SubscriptionEvidence, into stored: SubscriptionState, policy: Policy
    ) -> (facts: SubscriptionFacts, retractions: [Retraction]) {
        let answer = SubscriptionFacts(slice)
        let merged = stored.facts.merging(answer)
        let match = PeriodMatch(merged.periods)
        var standing = RetractionGuard(stored: stored, policy: policy, periods: merged.periods)
        for period in answer.periods where period.movedTo == nil {
            guard let index = match.index(of: period), period.isLate(beside: merged.periods[index]) else { continue }
            standing.said[index] = period
        }
        let replaced = Replacement.instants(in: merged.periods)
        for (known, replacedAt) in zip(stored.facts.periods, Replacement.instants(in: stored.facts.periods)) {
            guard let index = match.index(of: known) else { continue }
            standing.decideRevocation(of: known, at: index, replacedAt: (replacedAt, replaced[index]))
            standing.decideUpgrade(of: known, at: index)
            standing.decideSeats(of: known, at: index, by: slice)
            standing.periods[index].keepMove(of: known)
            if standing.periods[index].givesAccessAgain(after: known, by: slice) {
                standing.periods[index].details.replacedBy = nil
            }
        }
        let (head, lateHead) = (liveHead(of: stored.facts.periods), standing.lateHead)
        for known in stored.facts.periods {
            guard let index = match.index(of: known), known == head || index == lateHead else { continue }
            standing.decideEnd(of: known, at: index, isLate: index == lateHead, by: slice)
        }
        return (merged.with(standing.periods), standing.waiting)
    }

    /// Keeps what one answer alone takes back: of what was known, or of what this answer states late.
    private mutating func decide<Value>(
        _ what: Retraction.What, of known: Period, _ fact: WritableKeyPath<Period, Fact<Value>>, at index: Int,
        isTakenBack: Bool, isTakenBackOfSaid: Bool, end: Instant? = nil
    ) {
        guard let transaction = periods[index].transactionIDs.min() else { return }
        let earlier = stored.retractions.first { known.transactionIDs.contains($0.transactionID) && $0.what == what }
        let denial = periods[index][keyPath: fact].asOf
        func keep(_ period: Period, since: Instant) {
            periods[index][keyPath: fact] = period[keyPath: fact]
            // The kind of a revocation, and the seats that were refunded before, go with it.
            if what != .end { periods[index].details.sale = period.details.sale ?? periods[index].details.sale }
            waiting.append(Retraction(of: transaction, what, end: end, since: since))
        }
        if isTakenBack {
            let other = earlier.flatMap { $0.end == end ? $0.since : nil }
            let newest = max(denial, other ?? denial)
            if Self.counts(denial, with: other, statedAt: known[keyPath: fact].asOf, policy: policy) {
                periods[index][keyPath: fact].origin.asOf = newest
            } else {
                keep(known, since: newest)
            }
        } else if isTakenBackOfSaid, let late = said[index],
            Self.stands(late[keyPath: fact].asOf, against: denial, policy: policy)
        {
            keep(late, since: denial)
        } else if let earlier, denial < earlier.since {
            waiting.append(Retraction(of: transaction, what, end: earlier.end, since: earlier.since))
        }
    }

    private mutating func decideRevocation(
        of known: Period, at index: Int, replacedAt: (known: Instant?, now: Instant?)
    ) {
        let (now, late) = (periods[index], said[index])
        let isMerelyReplaced = now.isMerelyReplaced(at: replacedAt.now)
        let isRestGone = isMerelyReplaced && known.restRefundedAt(replacedAt: replacedAt.known) != nil
        let isSaidRestGone = isMerelyReplaced && late?.restRefundedAt(replacedAt: replacedAt.now) != nil
        decide(
            .revocation, of: known, \.revocation, at: index,
            isTakenBack: known.cancelledAt != nil && now.cancelledAt == nil || isRestGone,
            isTakenBackOfSaid: late?.cancelledAt != nil && now.cancelledAt == nil || isSaidRestGone)
        periods[index].keepShare(of: known, late, isRestGone: isRestGone)
    }

    private mutating func decideUpgrade(of known: Period, at index: Int) {
        let late = said[index].flatMap { $0.isUpgraded ? $0 : nil }
        // The single row of an answer about an iOS 6 receipt stands in no list, and cannot state an upgrade.
        if let marked = known.isUpgraded ? known : late, !periods[index].upgrade.path.contains("[") {
            periods[index].upgrade = marked.upgrade
        }
        let now = periods[index]
        let isBack = known.movedTo != nil && now.movedTo == nil
        decide(
            .upgrade, of: known, \.upgrade, at: index,
            isTakenBack: isBack || known.isUpgraded && !now.isUpgraded,
            isTakenBackOfSaid: late != nil && !now.isUpgraded)
    }

    private mutating func decideSeats(of known: Period, at index: Int, by slice: SubscriptionEvidence) {
        let (now, late) = (periods[index], said[index])
        let isLess = slice.takesBackSeats(of: known, in: now)
        let isOfStatuses = now.saleSaid.origin.isOfStatuses
        decide(
            .seats, of: known, \.saleSaid, at: index, isTakenBack: isLess,
            isTakenBackOfSaid: !isOfStatuses && late.map(now.losesSeats) ?? false)
        periods[index].keepSale(of: known, withSeats: !isLess)
        if let late { periods[index].keepSale(of: late, withSeats: isOfStatuses) }
    }

    private mutating func decideEnd(of known: Period, at index: Int, isLate: Bool, by slice: SubscriptionEvidence) {
        let now = periods[index].terms
        let isShorter = isShorter(index, than: known)
        let isOfStatuses = now.origin.isOfStatuses || slice.statesInStatuses(now)
        if isOfStatuses, isShorter || isLate {
            periods[index].terms = isShorter ? known.terms : said[index]?.terms ?? now
        }
        decide(
            .end, of: known, \.terms, at: index, isTakenBack: isShorter && !isOfStatuses,
            isTakenBackOfSaid: isLate && !isOfStatuses, end: now.value.expiresAt)
    }

    /// The period that would be the last live one, if what this answer states late of its end stood.
    private var lateHead: Int? {
        said.keys.sorted().filter { index in
            guard let late = said[index], isShorter(index, than: late) else { return false }
            let denial = periods[index].terms.origin
            return denial.isOfStatuses || Self.stands(late.terms.asOf, against: denial.asOf, policy: policy)
        }.max { left, right in
            guard let left = said[left], let right = said[right] else { return false }
            return right.endsAfter(left)
        }
    }

    /// Returns whether the last live period ends earlier than was stated, and no other one ends as late.
    private func isShorter(_ index: Int, than stated: Period) -> Bool {
        periods[index].expiresAt < stated.expiresAt && periods[index].isLive
            && Self.liveHead(of: periods).map { $0.expiresAt < stated.expiresAt } ?? false
    }

    private static func liveHead(of periods: [Period]) -> Period? {
        Period.indexOfHead(in: periods).map { periods[$0] }
    }
}

extension FactOrigin {
    /// Whether a transaction inside statuses stated it.
    fileprivate var isOfStatuses: Bool { path.contains("statuses.") }
}

extension SubscriptionEvidence {
    /// Returns whether a transaction inside statuses states these terms.
    fileprivate func statesInStatuses(_ terms: Fact<Terms>) -> Bool {
        transactions.contains { $0.source == .statuses && $0.path == terms.path && $0.asOf == terms.asOf }
    }

    /// Returns whether it states fewer refunded seats than were known of a period that was not taken back as a whole.
    fileprivate func takesBackSeats(of known: Period, in merged: Period) -> Bool {
        guard merged.losesSeats(of: known) else { return false }
        return transactions.contains { row in
            row.source != .statuses && row.asOf == merged.saleSaid.asOf
                && merged.transactionIDs.contains(row.transactionID)
                && row.sale?.seats?.revoked ?? 0 < known.refundedSeats
        }
    }
}

extension Period {
    /// What was said of its sale.
    fileprivate var saleSaid: Fact<Sale> {
        get { details.sale ?? Fact(Sale(), origin: .unspoken) }
        set { details.sale = newValue }
    }

    /// Whether something newer is known than it states.
    fileprivate func isLate(beside known: Period) -> Bool {
        terms.asOf < known.terms.asOf || revocation.asOf < known.revocation.asOf || upgrade.asOf < known.upgrade.asOf
            || saleSaid.asOf < known.saleSaid.asOf
    }

    fileprivate var refundedSeats: Int { details.sale?.value.seats?.revoked ?? 0 }

    /// Returns whether it has fewer refunded seats than were known, although nothing of it was taken back as a whole.
    fileprivate func losesSeats(of known: Period) -> Bool {
        cancelledAt == nil && known.cancelledAt == nil && refundedSeats < known.refundedSeats
    }

    /// Keeps the revocation with the mark of a period that moved: it comes back with its refund, or without one, as a whole.
    fileprivate mutating func keepMove(of known: Period) {
        if known.movedTo != nil, upgrade == known.upgrade { revocation = known.revocation }
    }

    /// Keeps what was stated of its sale, where its newest row lacks refunded seats and cannot take them back, or lacks the kind
    /// of a revocation that stands.
    fileprivate mutating func keepSale(of stated: Period, withSeats: Bool) {
        let losesKind =
            cancelledAt != nil && revocation.value == stated.revocation.value
            && details.sale?.value.revocationType == nil && stated.details.sale?.value.revocationType != nil
        if losesKind || withSeats && losesSeats(of: stated) { details.sale = stated.details.sale }
    }

    /// Whether it was replaced by another one without a refund of the rest of its price, and did not move.
    fileprivate func isMerelyReplaced(at replacedAt: Instant?) -> Bool {
        isUpgraded && movedTo == nil && restRefundedAt(replacedAt: replacedAt) == nil
    }

    /// Keeps what part of the price was repaid as long as the repayment of its date stands, also one that waits for a second
    /// answer that takes it back, and none of another date that `said` states late.
    fileprivate mutating func keepShare(of known: Period, _ said: Period?, isRestGone: Bool) {
        guard movedTo == nil, known.movedTo == nil else { return }
        let share = known.details.revocationPercentage
        if isRestGone, revocation == known.revocation { details.revocationPercentage = share }
        if let said, said.cancelledAt != nil {
            if !revocation.isDated(said.cancelledAt) {
                details.revocationPercentage = share
            } else if revocation == said.revocation, said.revocation.asOf < known.revocation.asOf {
                details.revocationPercentage = said.details.revocationPercentage
            }
        }
        details.revocationPercentage = revocation.share(
            details.revocationPercentage, knownBeside: known.revocation, share)
    }

    /// Returns whether it moved to another subscription and is back; or is elsewhere, and who paid has access again, because
    /// its refund there was taken back.
    fileprivate func givesAccessAgain(after known: Period, by slice: SubscriptionEvidence) -> Bool {
        if known.movedTo != nil, movedTo == nil { return true }
        guard let ended = details.replacedBy, slice.replacedBy == nil, ended.asOf < slice.asOf else { return false }
        return slice.transactions.contains { $0.statesMove && transactionIDs.contains($0.transactionID) }
    }
}

/// Something of Apple's own words that a newer answer takes back. It waits for a second answer.
package struct Retraction: Sendable, Hashable {
    /// What is taken back.
    package enum What: String, Sendable, Hashable {
        /// The end of the period.
        case end
        /// Its refund or revocation.
        case revocation
        /// That another row replaced it.
        case upgrade
        /// That some of its seats were refunded.
        case seats
    }

    /// A transaction of the period.
    package var transactionID: TransactionID
    /// What is taken back.
    package var what: What
    /// The earlier end that is given in place of the known one; nil for anything else.
    package var end: Instant?
    /// The instant of the newest answer that took it back.
    package var since: Instant

    package init(of transactionID: TransactionID, _ what: What, end: Instant? = nil, since: Instant) {
        (self.transactionID, self.what, self.end, self.since) = (transactionID, what, end, since)
    }
}

extension SubscriptionState {
    /// Returns whether an answer takes something back that waits for a second answer, or states what a newer one took back.
    package func doubts(in slice: SubscriptionEvidence) -> Bool {
        retractions.contains { retraction in
            guard let period = facts.periods.first(where: { $0.transactionIDs.contains(retraction.transactionID) })
            else { return false }
            return slice.transactions.contains { row in
                guard period.transactionIDs.contains(row.transactionID) else { return false }
                if row.asOf == period.statement(of: retraction.what).asOf { return true }
                switch row.source {
                case .deviceReceipt, .statuses: return false
                case .latestReceiptInfo, .signedText: return row.asOf >= retraction.since
                }
            }
        }
    }
}

extension Period {
    /// The newest statement of what an answer may take back.
    fileprivate func statement(of what: Retraction.What) -> FactOrigin {
        switch what {
        case .end: terms.origin
        case .revocation: revocation.origin
        case .upgrade: upgrade.origin
        case .seats: saleSaid.origin
        }
    }
}
