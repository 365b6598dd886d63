/// Prevents a lagging channel from undoing what Apple signed shortly before.
///
/// Apple's channels lag one another: an answer soon after a notification of a refund may still lack the refund. An answer
/// that contradicts a notification of the last ten minutes does not count, and Apple is asked again after a minute.
enum Contradiction {
    /// How long a notified fact stands against an answer of another channel.
    private static let window = Delay.minutes(10)

    /// Returns whether the evidence contradicts a fact that was notified shortly before its instant.
    static func waits(_ slice: SubscriptionEvidence, against facts: SubscriptionFacts, policy: Policy) -> Bool {
        guard slice.coverage == .whole, !slice.transactions.isEmpty, !slice.isNotified else { return false }
        let since = slice.asOf - window.divided(by: policy.speedup)
        let notified = facts.periods.filter { $0.isNotified(since: since) }
        guard !notified.isEmpty else { return false }
        let merged = facts.adding(slice).periods
        let match = PeriodMatch(merged)
        return notified.contains { period in
            match.index(of: period).map { period.isContradicted(by: merged[$0], since: since) } ?? false
        }
    }
}

extension Period {
    fileprivate func isNotified(since: Instant) -> Bool {
        revocation.origin.isNotified(since: since) || terms.origin.isNotified(since: since)
            || renewal?.willRenew?.origin.isNotified(since: since) ?? false
    }

    fileprivate func isContradicted(by merged: Period, since: Instant) -> Bool {
        if revocation.origin.isNotified(since: since), revocation.value != merged.revocation.value { return true }
        if terms.origin.isNotified(since: since), merged.expiresAt < expiresAt { return true }
        guard let willRenew = renewal?.willRenew, willRenew.origin.isNotified(since: since) else { return false }
        return willRenew.value != merged.renewal?.willRenew?.value
    }
}

extension SubscriptionEvidence {
    /// Whether it came with a notification.
    fileprivate var isNotified: Bool {
        transactions.contains { FactOrigin(asOf: $0.asOf, path: $0.path).isNotified(since: $0.asOf) }
    }
}

extension FactOrigin {
    /// Where the paths of notified facts begin.
    package static let notificationRoot = "notification."

    /// Returns whether the fact came with a notification, not before an instant.
    fileprivate func isNotified(since: Instant) -> Bool { asOf >= since && path.hasPrefix(Self.notificationRoot) }
}
