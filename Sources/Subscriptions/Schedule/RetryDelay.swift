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
