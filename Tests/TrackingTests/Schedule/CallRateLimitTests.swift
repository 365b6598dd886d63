import Subscriptions
import Testing

@testable import Tracking

@Suite("The rateLimit of calls follows Apple's answers") struct CallRateLimitTests {
    private let now = Instant(milliseconds: 1_800_000_000_000)

    private func round(
        asked: Int = 20, failed: Int = 0, overloaded: Int = 0, tooMany: Int = 0, retryAfter: Double? = nil,
        claimedAt: Instant? = nil
    ) -> OutcomeWindow {
        OutcomeWindow(
            asked: asked, failed: failed, overloaded: overloaded, tooMany: tooMany, retryAfterSeconds: retryAfter,
            newestFailureAt: claimedAt ?? now, failure: "failure")
    }

    @Test("Good answers change nothing")
    func goodAnswersChangeNothing() {
        let rateLimit = CallRateLimit(callsPerSecondMax: 50)
        let (after, pause) = rateLimit.after(round(), now: now)
        #expect(after == rateLimit)
        #expect(pause == 0)
    }

    @Test("Too many calls are halved and single complaints are noise", arguments: [(20, 0.5), (2, 0.5), (1, 0.975)])
    func tooManyCallsAreHalvedAndSingleComplaintsAreNoise(tooMany: Int, kept: Double) {
        let rateLimit = CallRateLimit(callsPerSecondMax: 50)
        let (after, pause) = rateLimit.after(round(overloaded: tooMany, tooMany: tooMany), now: now)
        #expect(abs(after.callsPerSecond(at: now) - 50 * kept) < 1e-9)
        #expect(pause == 0)
    }

    @Test("Other signs of overload cut by their part")
    func otherSignsOfOverloadCutByTheirPart() {
        let rateLimit = CallRateLimit(callsPerSecondMax: 40)
        #expect(rateLimit.after(round(overloaded: 10), now: now).rateLimit.callsPerSecond(at: now) == 30)
        let unlimited = CallRateLimit(callsPerSecondMax: 0)
        #expect(unlimited.after(round(overloaded: 10), now: now).rateLimit.callsPerSecond(at: now) == 750)
    }

    @Test("The floor is a call every other second and a minute brings everything back")
    func theFloorIsACallEveryOtherSecondAndAMinuteBringsEverythingBack() {
        var rateLimit = CallRateLimit(callsPerSecondMax: 50)
        for second in 0..<20 {
            let at = now + .seconds(Int64(2 * second))
            rateLimit.slowed = rateLimit.slowed.map { .init(to: $0.callsPerSecond, at: at - .seconds(2)) }
            rateLimit = rateLimit.after(round(overloaded: 20, tooMany: 20, claimedAt: at), now: at).rateLimit
        }
        let end = now + .seconds(38)
        #expect(rateLimit.callsPerSecond(at: end) < 5)
        rateLimit.slowed = .init(to: 0.1, at: end)
        #expect(rateLimit.callsPerSecond(at: end) == 0.5)
        #expect(abs(rateLimit.callsPerSecond(at: end + .seconds(30)) - 25.5) < 1e-9)
        #expect(rateLimit.callsPerSecond(at: end + .seconds(60)) == 50)
        #expect(rateLimit.callsPerSecond(at: end - .seconds(60)) == 0.5)
    }

    @Test("What was under way when it slowed down counts not")
    func whatWasUnderWayWhenItSlowedDownCountsNot() {
        let rateLimit = CallRateLimit(callsPerSecondMax: 50, slowed: .init(to: 20, at: now))
        let late = now + .seconds(3)
        let old = round(overloaded: 20, tooMany: 20, claimedAt: now - .seconds(1))
        #expect(rateLimit.after(old, now: late).rateLimit == rateLimit)
        let soon = round(overloaded: 20, tooMany: 20, claimedAt: now + Delay(milliseconds: 100))
        #expect(rateLimit.after(soon, now: now + Delay(milliseconds: 900)).rateLimit == rateLimit)
        let fresh = round(overloaded: 20, tooMany: 20, claimedAt: now + .seconds(1))
        #expect(abs(rateLimit.after(fresh, now: late).rateLimit.callsPerSecond(at: late) - 11.25) < 1e-9)
    }

    @Test("Apple's wish to wait is followed, but not for ever")
    func applesWishToWaitIsFollowedButNotForEver() {
        let rateLimit = CallRateLimit(callsPerSecondMax: 50)
        func pause(_ seconds: Double) -> Double {
            rateLimit.after(round(overloaded: 1, tooMany: 1, retryAfter: seconds), now: now).pauseSeconds
        }
        #expect(pause(7) == 7)
        #expect(pause(0) == 0)
        #expect(pause(1e9) == 900)
    }

    @Test("A rateLimit does not grow while Apple wishes to be left alone")
    func aPaceDoesNotGrowWhileAppleWishesToBeLeftAlone() {
        let rateLimit = CallRateLimit(callsPerSecondMax: 60)
        let cut = rateLimit.after(round(overloaded: 20, tooMany: 20, retryAfter: 120), now: now).rateLimit
        let end = now + .seconds(120)
        #expect(cut.callsPerSecond(at: end) == 30)
        #expect(cut.callsPerSecond(at: end + .seconds(10)) == 40)
        // What was under way says the same again: the rateLimit is not cut twice, and begins no sooner.
        let later = now + .seconds(2)
        let again = cut.after(round(overloaded: 9, tooMany: 9, retryAfter: 120, claimedAt: now), now: later).rateLimit
        #expect(again.callsPerSecond(at: later + .seconds(120)) == 30)
        // An app at the full rate keeps it unless Apple asks for fewer calls.
        #expect(rateLimit.after(round(failed: 1, retryAfter: 9), now: now).rateLimit.callsPerSecond(at: now) == 60)
        let grown = CallRateLimit(callsPerSecondMax: 60, slowed: .init(to: 1, at: now - .seconds(600)))
        #expect(grown.after(round(failed: 1, retryAfter: 9), now: now).rateLimit.callsPerSecond(at: now) == 60)
    }

    @Test("Pauses grow while Apple does not answer, and end with a slow start")
    func pausesGrowWhileNobodyAnswersAndEndWithASlowStart() {
        var rateLimit = CallRateLimit(callsPerSecondMax: 50)
        var clock = now
        var pauses: [Double] = []
        for _ in 0..<10 {
            let (after, pause) = rateLimit.after(round(failed: 11, claimedAt: clock), now: clock)
            pauses.append(pause)
            rateLimit = after
            rateLimit.pausedUntil = clock + .seconds(Int64(pause))
            clock = rateLimit.pausedUntil
        }
        #expect(pauses == [0, 0, 2, 4, 8, 16, 32, 60, 60, 60])
        #expect(rateLimit.callsPerSecond(at: clock) == 0.5)
        let (again, pause) = rateLimit.after(round(asked: 3, failed: 1, claimedAt: clock), now: clock)
        #expect(again.failures == 0)
        #expect(pause == 0)
        #expect(again.callsPerSecond(at: clock + .seconds(6)) < 10)
    }

    @Test("Answers of before a pause do not lengthen it")
    func answersOfBeforeAPauseDoNotLengthenIt() {
        let rateLimit = CallRateLimit(callsPerSecondMax: 50, failures: 3, pausedUntil: now + .seconds(2))
        let (after, pause) = rateLimit.after(round(failed: 20, claimedAt: now), now: now)
        #expect(after.failures == 3)
        #expect(pause == 0)
    }

    @Test("Failures that never end are paused for ever")
    func failuresThatNeverEndArePausedForEver() {
        let rateLimit = CallRateLimit(callsPerSecondMax: 50, failures: CallRateLimit.failuresMax)
        #expect(rateLimit.after(round(failed: 20), now: now).pauseSeconds == CallRateLimit.pauseSecondsMax)
    }
}
