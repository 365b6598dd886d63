/// The constants of the schedule. `nextCheck` plans checks with them, and `ageLimit` derives its limits from them. They
/// are Apple's rhythm, the same for every app; `Policy` has what is set per app. The speedup divides all of them.
enum PollingIntervals {
    /// Before an end: how long before it an expected renewal usually shows, at most this part of the period.
    static let lead = Delay.minutes(30)
    static let leadPartsMin = 10
    /// The factor by which the spread of checks before an end grows when more ends than usual fall together.
    static let turnOfMonthFactor: Int64 = 6
    /// After an end: when Apple knows the outcome, and the spread of the checks of ends that the customer chose.
    static let afterEnd = Delay.seconds(90)
    static let afterEndSpread = Delay.seconds(60)
    /// While the outcome of an end is unknown: the first step, the growth of each step, the longest step.
    static let firstStep = Delay.minutes(3)
    static let stepGrowthTenths: Int64 = 17
    static let longestStep = Delay.hours(6)
    /// The interval between checks during the outage allowance.
    static let inOutageAllowance = Delay.minutes(15)
    /// The wait for a second answer about what an answer took back, and after one that is set aside.
    static let secondAnswer = Delay.minutes(1)
    /// So many calls in a row may bring answers that are set aside before the waits grow by a minute each, and the longest wait.
    static let setAsideCalls = 10
    static let setAsideLongest = Delay.minutes(15)

    /// While Apple retries: a quarter of the elapsed time within these limits, then a fixed step, until Apple gives up.
    static let retryPart = 4
    static let retryShortest = Delay.hours(1)
    static let retryLongest = Delay.days(1)
    static let retrySpreadPart = 20
    static let retryGrowsUntil = Delay.days(16)
    static let retryLater = Delay.days(2)
    static let retryEnds = Delay.days(65)
    /// Apple tries a payment of a term for 90 days.
    static let paymentRetryEnds = Delay.days(95)
    /// The wait after the end of a grace period, and the spread of these checks.
    static let afterGrace = Delay.minutes(1)
    static let afterGraceSpread = Delay.minutes(2)
    /// The interval between checks during a grace period whose end Apple does not give.
    static let assumedGrace = Delay.hours(6)

    /// A refund may be reversed: weekly while it is young. The next charge, if renewal is on, is an end like any other.
    static let revoked = Delay.days(7)
    static let revokedIsYoung = Delay.days(60)
    /// After an expiry: these days, and daily while Apple has merely said nothing.
    static let expiredDays: [Int64] = [1, 7, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 330, 360]
    static let expiredSpread = Delay.minutes(30)
    static let expiredUnsaid = Delay.days(1)

    /// Refund checks, by the age of the newest charge: the first row whose limit exceeds that age applies.
    static let sweeps: [(youngerThan: Delay, every: Delay)] = [
        (.days(14), .days(3)), (.days(60), .days(7)), (.days(90), .days(10)),
    ]
    static let sweepLater = Delay.days(30)

    /// Returns the time between two refund checks, by the age of the newest charge.
    static func sweep(age: Delay, _ policy: Policy) -> Delay {
        let row = sweeps.first { age < max($0.youngerThan.divided(by: policy.speedup), shortestDelay) }
        let usual = row?.every ?? sweepLater
        return usual.times(Int64(policy.sweepStretch))
    }

    /// A check that is due anyway serves as a refund check if it comes after it by at most this part, and this much.
    static let sweepPatiencePart = 2
    static let sweepPatience = Delay.days(4)

    /// Returns how much later than a refund check of this delay another check may come that serves for both.
    static func sweepPatience(for delay: Delay) -> Delay { min(delay.divided(by: sweepPatiencePart), sweepPatience) }

    /// The time after its purchase for which a one-time purchase is checked for a refund.
    static let purchaseSweepEnds = Delay.days(90)
    /// Delays of days are spread by this part of themselves, at most this long.
    static let spreadPart = 20
    static let spreadLongest = Delay.minutes(30)

    /// The checks after an end in the sandbox, counted from the end.
    static let sandbox: [Delay] =
        [.seconds(15)] + [1, 2, 5, 15, 60].map { .minutes($0) } + (1...7).map { .days($0) }
    static let sandboxSpreadPart = 20

    /// Without knowledge: an answer without purchases, a refusal of a receipt never vouched for and of one that was.
    static let emptySteps: [Delay] = [.hours(1), .days(1), .days(7)]
    static let refusedSteps: [Delay] = [.hours(4), .hours(19)]
    /// After an answer that a transaction is not known, which Apple's servers may say of a purchase of the last minutes.
    static let unknownSteps: [Delay] = [.minutes(1), .minutes(5), .minutes(30), .days(1)]
    static let refusedDaily = Delay.days(1)
    static let refusalsFinal = 3
    static let refusedFinally = Delay.hours(72)
    /// After a refused secret; about a receipt that Apple never vouched for, a part of its age, at most a day.
    static let wrongSecret = Delay.minutes(5)
    static let wrongSecretPart = 4
    static let wrongSecretLongest = Delay.days(1)
    /// After failed calls: the first and the longest limit of the back-off, for a new receipt and for others.
    static let retryNew: (first: Delay, longest: Delay) = (.seconds(2), .minutes(5))
    static let retryOthers: (first: Delay, longest: Delay) = (.seconds(30), .hours(1))
}

/// Returns the wait after the n-th consecutive failed call (1 is the first): full jitter, deterministic by seed and n.
/// The limit doubles from 2 s to 5 min for a new receipt that a customer waits for, and from 30 s to 1 h for others.
/// The policy's speedup divides it; never under 250 ms.
package func retryDelay(afterFailures count: Int, new: Bool, seed: UInt64, policy: Policy) -> Delay {
    let (first, most) = new ? PollingIntervals.retryNew : PollingIntervals.retryOthers
    let doublings = min(max(count, 1) - 1, 30)
    let limit = min(Delay(milliseconds: first.milliseconds << doublings), most)
    let delay = Jitter(seed: seed).delay(below: limit, at: Int64(doublings))
    return max(delay.divided(by: policy.speedup), shortestDelay)
}

/// The shortest delay between two checks, whatever the speedup.
let shortestDelay = Delay(milliseconds: 250)

/// Returns the wait for a second answer if the first one omitted data it should contain; divided by the speedup.
package func secondAnswerDelay(policy: Policy) -> Delay {
    max(PollingIntervals.secondAnswer.divided(by: policy.speedup), shortestDelay)
}

/// Returns the wait after an answer that is set aside, by the calls in a row that brought no usable answer: a minute, and after
/// ten of them a minute longer each time, up to a quarter of an hour; divided by the speedup.
package func setAsideDelay(afterCalls count: Int, policy: Policy) -> Delay {
    let minutes = Int64(max(1, count - PollingIntervals.setAsideCalls + 1))
    let delay = min(PollingIntervals.secondAnswer.times(minutes), PollingIntervals.setAsideLongest)
    return max(delay.divided(by: policy.speedup), shortestDelay)
}

/// Spreads checks so that receipts due at the same moment are not checked at once. The same receipt, moment and purpose
/// always give the same spread: a repeated settlement plans the same check.
struct Jitter {
    /// The receipt's own number.
    let seed: UInt64

    /// Returns a delay from zero up to, not including, `limit`, for one moment.
    func delay(below limit: Delay, at moment: Int64) -> Delay {
        guard limit > .zero else { return .zero }
        let hash = Self.mix(seed ^ Self.mix(UInt64(bitPattern: moment)))
        return Delay(milliseconds: Int64(hash % UInt64(limit.milliseconds)))
    }

    /// Applies the finishing step of SplitMix64: every bit of the input reaches every bit of the output.
    private static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
