import Ledger
import Subscriptions

extension CallPace {
    /// Rounds that may fail before the first pause.
    static let failuresTolerated = 2
    /// From where on failed rounds are not counted any more.
    static let failuresMax = 100
    /// The longest pause between two tries, in seconds.
    static let pauseSecondsMax = 60.0
    /// The longest that Apple's word to retry later is followed for, in seconds; it asks too much if it asks for more.
    static let retryAfterSecondsMax = 900.0
    /// How soon after slowing down the calls may be slowed down again: what was under way is still coming in.
    static let slowingSecondsMin = 1.0

    /// The pace after a round of answers: additive growth, multiplicative cuts, one breaker.
    ///
    /// Growth is by the clock (`callsPerSecond(at:)`), but not while Apple wishes not to be asked. Too many HTTP 429 halve
    /// the calls; other signs of overload cut half of the part of the answers that they are, so that single errors do
    /// little. A pause grows with each round that fails, and after it the calls begin at the slowest pace. Only answers to
    /// questions of after the last cut or pause count against it.
    func after(_ round: AnswerRound, now: Instant) -> (pace: CallPace, pauseSeconds: Double) {
        var next = self
        next.slowed = slowed(after: round, now: now)
        var pause = 0.0
        if round.troubled * 2 <= round.asked {
            next.failures = 0
        } else if isNews(round, since: closedUntil) {
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

    /// A pause in which nobody is asked shows nothing of how much Apple can take, so a slowed pace grows from its end on.
    private func kept(until end: Instant, now: Instant) -> Slowed? {
        guard let slowed, callsPerSecond(at: now) != callsPerSecondMax, slowed.at < end else { return slowed }
        return Slowed(to: callsPerSecond(at: now), at: end)
    }

    /// Seconds to wait after so many failed rounds in a row; 0 while Apple answers.
    static func pauseSeconds(after failures: Int) -> Double {
        let beyond = failures - failuresTolerated
        guard beyond > 0 else { return 0 }
        return min(pauseSecondsMax, Double(1 << min(beyond, 10)))
    }

    private func slowed(after round: AnswerRound, now: Instant) -> Slowed? {
        guard round.overloaded > 0, round.asked > 0, isNews(round, since: slowed?.at) else { return slowed }
        if let slowed, now - slowed.at < .milliseconds(of: Self.slowingSecondsMin) { return slowed }
        let part = Double(round.overloaded) / Double(round.asked)
        let kept = round.tooMany * AnswerRound.tooManyPart >= round.asked ? 0.5 : 1 - part / 2
        let present = callsPerSecond(at: now)
        return Slowed(to: (present == 0 ? callsPerSecondFull : present) * kept, at: now)
    }

    private func isNews(_ round: AnswerRound, since instant: Instant?) -> Bool {
        guard let instant, let newest = round.newestTroubleAt else { return true }
        return newest >= instant
    }
}

extension Delay {
    fileprivate static func milliseconds(of seconds: Double) -> Delay { Delay(milliseconds: Int64(seconds * 1000)) }
}
