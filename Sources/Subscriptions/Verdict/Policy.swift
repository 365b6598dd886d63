/// The operator's tolerances. Everything else comes from Apple.
package struct Policy: Sendable, Hashable {
    /// How long after an expiry an expected renewal may still be booked without ending access.
    package var leeway: Delay
    /// The outage allowance: how long access continues while Apple could not be asked.
    package var outageAllowance: Delay
    /// The longest gap between two periods that still counts as a renewal.
    package var lateRenewalTolerance: Delay
    /// The window over which the checks shortly before an end are spread, so that subscriptions ending together are not
    /// checked at once; six times as long at the turn of a month.
    package var preCheckSpread = Policy.preCheckSpreadUsual
    /// The usual window: ten minutes.
    package static let preCheckSpreadUsual = Delay.minutes(10)
    /// The divisor of every delay of the schedule; 1 in production use.
    package var speedup: Int
    /// The factor by which the interval between two refund checks grows; 1 unless another source reports refunds.
    package var sweepStretch: Int

    /// Creates a policy from its parts; a speedup or a stretch below 1 counts as 1.
    package init(
        leeway: Delay, outageAllowance: Delay, lateRenewalTolerance: Delay, speedup: Int = 1, sweepStretch: Int = 1
    ) {
        self.leeway = leeway
        self.outageAllowance = outageAllowance
        self.lateRenewalTolerance = lateRenewalTolerance
        self.speedup = max(1, speedup)
        self.sweepStretch = max(1, sweepStretch)
    }

    /// Returns the defaults: leeway 2 h (sandbox 5 min), outage allowance 30 days, late renewals within 1 h (sandbox 10
    /// min).
    ///
    /// The speedup divides all of them.
    package static func standard(for environment: StoreEnvironment, speedup: Int = 1) -> Policy {
        let divisor = max(1, speedup)
        let (leeway, tolerance): (Delay, Delay) =
            switch environment {
            case .production: (.hours(2), .hours(1))
            case .sandbox: (.minutes(5), .minutes(10))
            }
        return Policy(
            leeway: leeway.divided(by: divisor), outageAllowance: Delay.days(30).divided(by: divisor),
            lateRenewalTolerance: tolerance.divided(by: divisor), speedup: divisor)
    }

    /// Returns the same policy with another leeway; `explain` uses none.
    package func with(leeway: Delay) -> Policy {
        var copy = self
        copy.leeway = leeway
        return copy
    }
}

extension Delay {
    /// Returns a fraction of the delay, rounded down to the millisecond.
    package func divided(by divisor: Int) -> Delay {
        Delay(milliseconds: milliseconds / Int64(max(1, divisor)))
    }
}
