import Ledger
import Subscriptions

extension CallRateLimit {
    /// Rounds that may fail before the first pause.
    static let failuresTolerated = 2
    /// The count of failed rounds stops here.
    static let failuresMax = 100
    /// The longest pause between two tries, in seconds.
    static let pauseSecondsMax = 60.0
    /// The longest wait requested by Apple that is respected, in seconds; a longer one is cut to this.
    static let retryAfterSecondsMax = 900.0
    /// The shortest time between two slow-downs, in seconds: answers to earlier calls are still coming in.
    static let slowingSecondsMin = 1.0

    /// Returns the rate limit after a round of answers: additive growth, multiplicative cuts, one breaker.
    ///
    /// Growth follows the clock (`callsPerSecond(at:)`), but stops while Apple asks for a wait. Too many HTTP 429 halve
    /// the calls. Other signs of overload cut the calls by half of their share of the answers, so that single errors do
    /// little. A pause grows with each round that fails; after it the calls begin at the slowest rate. Only answers to
    /// requests made after the last cut or pause count against the rate limit.
    func after(_ round: OutcomeWindow, now: Instant) -> (rateLimit: CallRateLimit, pauseSeconds: Double) {
        var next = self
        next.slowed = slowed(after: round, now: now)
        var pause = 0.0
        if round.failed * 2 <= round.asked {
            next.failures = 0
        } else if isNews(round, since: pausedUntil) {
            next.failures = min(failures + 1, Self.failuresMax)
            pause = Self.pauseSeconds(after: next.failures)
        }
        if pause > 0 { next.slowed = Slowed(to: Self.callsPerSecondMin, at: now + .milliseconds(of: pause)) }
        if let asked = round.retryAfterSeconds {
            pause = max(pause, min(asked, Self.retryAfterSecondsMax))
            if pause > 0 { next.slowed = next.kept(until: now + .milliseconds(of: pause), now: now) }
        }
        return (next, pause)
    }

    /// Restarts the growth of a slowed rate at the end of a pause: without calls a pause does not show how much Apple
    /// can take.
    private func kept(until end: Instant, now: Instant) -> Slowed? {
        guard let slowed, callsPerSecond(at: now) != callsPerSecondMax, slowed.at < end else { return slowed }
        return Slowed(to: callsPerSecond(at: now), at: end)
    }

    /// Returns the seconds to wait after `failures` failed rounds in a row; 0 while Apple answers.
    static func pauseSeconds(after failures: Int) -> Double {
        let beyond = failures - failuresTolerated
        guard beyond > 0 else { return 0 }
        return min(pauseSecondsMax, Double(1 << min(beyond, 10)))
    }

    private func slowed(after round: OutcomeWindow, now: Instant) -> Slowed? {
        guard round.overloaded > 0, round.asked > 0, isNews(round, since: slowed?.at) else { return slowed }
        if let slowed, now - slowed.at < .milliseconds(of: Self.slowingSecondsMin) { return slowed }
        let part = Double(round.overloaded) / Double(round.asked)
        let kept = round.tooMany * OutcomeWindow.tooManyPart >= round.asked ? 0.5 : 1 - part / 2
        let present = callsPerSecond(at: now)
        return Slowed(to: (present == 0 ? callsPerSecondFull : present) * kept, at: now)
    }

    private func isNews(_ round: OutcomeWindow, since instant: Instant?) -> Bool {
        guard let instant, let newest = round.newestFailureAt else { return true }
        return newest >= instant
    }
}

extension Delay {
    fileprivate static func milliseconds(of seconds: Double) -> Delay { Delay(milliseconds: Int64(seconds * 1000)) }
}
