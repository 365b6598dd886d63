import Subscriptions
import Testing

@testable import Tracking

@Suite("Low-water marks keep claims from reading entries again") struct LowWaterTests {
    private let now = Instant(milliseconds: 1_800_000_000_000)
    private let start = ContinuousClock.now

    /// What a lane's mark is after a first full look and one claim.
    private func raised(_ dueAt: Instant, lane: Lane = .sweep) -> LowWater {
        var water = LowWater()
        _ = water.marks(now: start)
        water.advance(1, lane, dueAt: dueAt, claimedAt: now)
        water.looked(now: start, busySeconds: 0.002)
        return water
    }

    @Test("What was claimed is left behind until the next full look")
    func whatWasClaimedIsLeftBehindUntilTheNextFullLook() {
        var water = LowWater()
        #expect(water.marks(now: start).isEmpty)
        water.advance(1, .sweep, dueAt: now - .hours(3), claimedAt: now)
        water.advance(1, .sweep, dueAt: now - .hours(4), claimedAt: now)
        water.advance(2, .expiring, dueAt: now - .seconds(1), claimedAt: now)
        water.looked(now: start, busySeconds: 0.002)
        let marks = [
            DueMark(appID: 1, lane: .sweep, dueAt: now - .hours(3)),
            DueMark(appID: 2, lane: .expiring, dueAt: now - LowWater.margin),
        ]
        #expect(water.marks(now: start + .seconds(0.9)).sorted { $0.appID < $1.appID } == marks)
        #expect(water.marks(now: start + .seconds(1)).isEmpty)
        water.looked(now: start + .seconds(1.1), busySeconds: 0.1)
        #expect(water.marks(now: start + .seconds(2)).isEmpty)
    }

    /// An imported receipt has its place by its expiry, and comes below the mark whenever that is nearer.
    @Test("No lane is looked at from its mark for longer than a second")
    func noLaneIsLookedAtFromItsMarkForLongerThanASecond() {
        for lane in Lane.allCases {
            var water = raised(now, lane: lane)
            #expect(water.marks(now: start + .seconds(0.9)).count == 1)
            #expect(water.marks(now: start + .seconds(1)).isEmpty, "\(lane)")
        }
    }

    /// A database that is busy with walking past dead entries shall not be asked to do nothing else.
    @Test("After a long full look the next one waits twenty times as long")
    func afterALongFullLookTheNextOneWaitsTwentyTimesAsLong() {
        var water = raised(now - .hours(3))
        _ = water.marks(now: start + .seconds(1))
        water.advance(1, .sweep, dueAt: now - .hours(4), claimedAt: now)
        water.looked(now: start + .seconds(2), busySeconds: 0.5)
        #expect(water.marks(now: start + .seconds(11.9)) == [DueMark(appID: 1, lane: .sweep, dueAt: now - .hours(4))])
        #expect(water.marks(now: start + .seconds(12)).isEmpty)
        water.advance(1, .sweep, dueAt: now - .hours(4), claimedAt: now)
        water.looked(now: start + .seconds(40), busySeconds: 25)
        #expect(water.marks(now: start + .seconds(99.9)).count == 1)
        #expect(water.marks(now: start + .seconds(100)).isEmpty)
    }

    /// Ten seconds went by until a connection was there; the look itself took two milliseconds.
    @Test("The wait for a connection is no work")
    func theWaitForAConnectionIsNoWork() {
        var water = raised(now - .hours(3))
        #expect(water.marks(now: start + .seconds(1)).isEmpty)
        water.looked(now: start + .seconds(11), busySeconds: 0.002)
        #expect(water.marks(now: start + .seconds(11.1)).isEmpty)
    }

    @Test("When the database was away the next look is a full one")
    func whenTheDatabaseWasAwayTheNextLookIsAFullOne() {
        var water = raised(now - .hours(3))
        for second in [1.0, 12, 23] {
            #expect(water.marks(now: start + .seconds(second)).isEmpty)
            water.failed(now: start + .seconds(second + 10), wasTooSlow: false)
        }
        #expect(water.marks(now: start + .seconds(34)).isEmpty)
    }

    @Test("A full look that took too long is not repeated at once")
    func aFullLookThatTookTooLongIsNotRepeatedAtOnce() {
        var water = raised(now - .hours(3))
        #expect(water.marks(now: start + .seconds(1)).isEmpty)
        water.failed(now: start + .seconds(31), wasTooSlow: true)
        let marks = [DueMark(appID: 1, lane: .sweep, dueAt: now - .hours(3))]
        #expect(water.marks(now: start + .seconds(31)) == marks)
        #expect(water.marks(now: start + .seconds(90.9)) == marks)
        #expect(water.marks(now: start + .seconds(91)).isEmpty)
    }

    /// Only a full look replaces anything.
    @Test("An ordinary look that fails changes nothing")
    func anOrdinaryLookThatFailsChangesNothing() {
        var water = raised(now - .hours(3))
        let marks = water.marks(now: start + .seconds(0.5))
        water.failed(now: start + .seconds(0.6), wasTooSlow: true)
        #expect(water.marks(now: start + .seconds(0.9)) == marks)
        #expect(water.marks(now: start + .seconds(1)).isEmpty)
    }
}
