/// Prevents a lagging replica at Apple from taking back what Apple said itself: a refund, an upgrade mark, or the end of the
/// last live period, which moves back without a cancellation or upgrade. A period that moved to another subscription is
/// marked as refunded and upgraded at its start, so that it comes back likewise.
///
/// What is taken back stays until a second, later answer takes it back too, ten minutes after the newest statement of it at
/// the earliest. A transaction inside statuses takes nothing back.
enum RetractionGuard {
    /// How long the newest statement of what is taken back stands at least.
    private static let standsFor = Delay.minutes(10)

    static func accept(
        _ slice: SubscriptionEvidence, into stored: SubscriptionState, policy: Policy
    ) -> (facts: SubscriptionFacts, retractions: [Retraction]) {
        let merged = stored.facts.adding(slice)
        var periods = merged.periods
        let match = PeriodMatch(periods)
        var waiting: [Retraction] = []
        func decide<Value>(
            _ what: Retraction.What, of known: Period, _ fact: WritableKeyPath<Period, Fact<Value>>, at index: Int,
            isTakenBack: Bool, end: Instant? = nil
        ) {
            guard let transaction = known.transactionIDs.min() else { return }
            let earlier = stored.retractions.first {
                known.transactionIDs.contains($0.transactionID) && $0.what == what
            }
            let (said, stated) = (periods[index][keyPath: fact].asOf, known[keyPath: fact].asOf)
            guard isTakenBack else {
                if let earlier, said < earlier.since { waiting.append(earlier) }
                return
            }
            let first = earlier.flatMap { $0.end == end ? $0 : nil }
            if counts(said, after: first?.since, statedAt: stated, policy: policy) { return }
            periods[index][keyPath: fact] = known[keyPath: fact]
            waiting.append(first ?? Retraction(of: transaction, what, end: end, since: said))
        }
        for known in stored.facts.periods {
            guard let index = match.index(of: known) else { continue }
            let isGone = known.cancelledAt != nil && periods[index].cancelledAt == nil
            decide(.revocation, of: known, \.revocation, at: index, isTakenBack: isGone)
            // The single row of an answer about an iOS 6 receipt stands in no list, and cannot state an upgrade.
            if known.isUpgraded, !periods[index].upgrade.path.contains("[") { periods[index].upgrade = known.upgrade }
            decide(
                .upgrade, of: known, \.upgrade, at: index, isTakenBack: known.isUpgraded && !periods[index].isUpgraded)
            // A period that moved comes back with its refund, or without one, as a whole.
            if known.movedTo != nil, periods[index].upgrade == known.upgrade {
                periods[index].revocation = known.revocation
            }
            // The period moved to another subscription, and is back.
            if known.movedTo != nil, periods[index].movedTo == nil { periods[index].details.replacedBy = nil }
        }
        if let head = liveHead(of: stored.facts.periods), let index = match.index(of: head) {
            let end = periods[index].expiresAt
            let isShorter =
                end < head.expiresAt && !periods[index].isUpgraded && periods[index].cancelledAt == nil
                && liveHead(of: periods).map { $0.expiresAt < head.expiresAt } ?? false
            let isOfStatuses = slice.transactions.contains {
                $0.source == .statuses && $0.path == periods[index].terms.path && $0.asOf == periods[index].terms.asOf
            }
            if isShorter, isOfStatuses { periods[index].terms = head.terms }
            decide(.end, of: head, \.terms, at: index, isTakenBack: isShorter && !isOfStatuses, end: end)
        }
        return (merged.with(periods), waiting)
    }

    /// Returns whether an answer of an instant takes something back for good.
    static func counts(_ said: Instant, after earlier: Instant?, statedAt stated: Instant, policy: Policy) -> Bool {
        earlier.map { said > $0 && said >= stated + standsFor.divided(by: policy.speedup) } ?? false
    }

    private static func liveHead(of periods: [Period]) -> Period? {
        periods.filter { !$0.isUpgraded && $0.cancelledAt == nil }
            .reduce(nil) { known, period in
                guard let known, known.endsAfter(period) else { return period }
                return known
            }
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
    }

    /// A transaction of the period.
    package var transactionID: TransactionID
    /// What is taken back.
    package var what: What
    /// The earlier end that is given in place of the known one; nil for anything else.
    package var end: Instant?
    /// The instant of the first answer that took it back.
    package var since: Instant

    /// Creates a retraction from its parts.
    package init(of transactionID: TransactionID, _ what: What, end: Instant? = nil, since: Instant) {
        (self.transactionID, self.what, self.end, self.since) = (transactionID, what, end, since)
    }
}

extension SubscriptionFacts {
    /// Returns the same facts with other periods.
    func with(_ periods: [Period]) -> SubscriptionFacts {
        SubscriptionFacts(
            originalTransactionID: originalTransactionID, asOf: asOf, periods: periods, renewal: renewal)
    }
}

extension SubscriptionState {
    /// Returns the same state under another version.
    func with(version: Int64) -> SubscriptionState {
        SubscriptionState(copying: self, version: version)
    }
}
