/// How far notifications are trusted to report refunds, which lengthens the sweeps of an app with `--sweep auto`.
///
/// docs/schedule.md has the rule, docs/decisions.md says which refunds count.
package struct SweepTrust: Sendable, Hashable {
    /// The factor by which the interval between two refund checks grows: 1, 2 or 4.
    package let factor: Int
    /// The lower bound of the share of refunds that notifications report within a day.
    package let lowerBound: Double
    /// How long notifications have to be silent to count as stopped.
    package let silenceLongest: Delay
    /// Whether they have been silent for longer than that, or never came.
    package let isSilent: Bool

    /// The normal quantile of a two-sided interval of 95 %.
    package static let quantile = 1.96
    /// The lower bounds that a factor needs, the largest first.
    package static let levels: [(bound: Double, factor: Int)] = [(0.995, 4), (0.98, 2)]
    /// Within this time of Apple's instant a notification has to come.
    package static let reportedWithin = Delay.days(1)
    /// Until a refund is this old the usual sweep may not have looked, so that a reported one does not count yet. One
    /// that was missed counts at once.
    package static let matureAfter = Delay.days(14)
    /// How long a refund counts once it is mature.
    package static let window = Delay.days(90)
    /// The share of receipts that are swept as before: one of twenty.
    package static let controlGroupOneOf: Int64 = 20
    /// Silence counts from this many usual gaps between two notifications on, but within these limits.
    package static let silentGaps: Int64 = 50
    package static let silenceShortest = Delay.hours(1)
    package static let silenceLimit = Delay.days(1)

    /// Judges what is known of an app at an instant; the speedup divides every time.
    package init(_ evidence: SweepEvidence, at now: Instant, speedup: Int) {
        let (shortest, limit) = (Self.silenceShortest.divided(by: speedup), Self.silenceLimit.divided(by: speedup))
        let usual = evidence.usualGap.map { min(max($0.times(Self.silentGaps), shortest), limit) } ?? limit
        silenceLongest = max(usual, shortestDelay)
        isSilent = evidence.lastNotificationAt.map { [silenceLongest] in now - $0 > silenceLongest } ?? true
        let bound = Self.lowerBound(evidence.reported, of: evidence.reported + evidence.missed)
        let earned = Self.levels.first { bound >= $0.bound }?.factor ?? 1
        lowerBound = bound
        factor = isSilent ? 1 : earned
    }

    /// Returns the lower end of Wilson's interval for a share; 0 for no trial.
    package static func lowerBound(_ successes: Int64, of trials: Int64) -> Double {
        guard trials > 0 else { return 0 }
        let (count, square) = (Double(trials), quantile * quantile)
        let share = Double(successes) / count
        let spread = quantile * (share * (1 - share) / count + square / (4 * count * count)).squareRoot()
        return max(0, (share + square / (2 * count) - spread) / (1 + square / count))
    }

    /// Whether a receipt is swept as before, whatever the factor, so that what notifications miss is found and counted.
    package static func isControl(_ receipt: UInt64) -> Bool {
        Jitter(seed: receipt).delay(below: Delay(milliseconds: controlGroupOneOf), at: 0) == .zero
    }
}

/// What is known of an app's notifications.
package struct SweepEvidence: Sendable, Hashable {
    /// Mature refunds that a notification reported in time.
    package var reported: Int64
    /// Refunds that none did.
    package var missed: Int64
    /// When the last verified notification came; nil for never.
    package var lastNotificationAt: Instant?
    /// The mean time between two of the last ones; nil for too few.
    package var usualGap: Delay?

    /// Creates the evidence from its parts.
    package init(reported: Int64, missed: Int64, lastNotificationAt: Instant? = nil, usualGap: Delay? = nil) {
        self.reported = reported
        self.missed = missed
        self.lastNotificationAt = lastNotificationAt
        self.usualGap = usualGap
    }
}
