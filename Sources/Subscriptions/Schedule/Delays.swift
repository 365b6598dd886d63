/// Returns the wait after the n-th consecutive failed call (1 is the first): full jitter, deterministic by seed and n.
///
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
    max(PollingIntervals.suspected.divided(by: policy.speedup), shortestDelay)
}

/// Spreads checks so that receipts due at the same moment are not checked at once.
///
/// The same receipt, moment and purpose always give the same spread: a repeated settlement plans the same check.
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
