import Testing

@testable import Subscriptions

@Suite("Refund checks grow rare as far as notifications prove reliable")
struct SweepTrustTests {
    private let now = Instant(milliseconds: 1_800_000_000_000)

    private func trust(
        _ reported: Int64, missed: Int64 = 0, heardAgo: Delay? = .minutes(3), gap: Delay? = .minutes(10),
        speedup: Int = 1
    ) -> SweepTrust {
        let evidence = SweepEvidence(
            reported: reported, missed: missed,
            lastNotificationAt: heardAgo.map { now + Delay(milliseconds: -$0.milliseconds) }, usualGap: gap)
        return SweepTrust(evidence, at: now, speedup: speedup)
    }

    @Test("The lower bound is that of Wilson's interval")
    func bound() {
        let bounds = [(0, 0), (0, 10), (10, 10), (412, 418), (189, 189), (765, 765), (81, 263)].map {
            (SweepTrust.lowerBound($0, of: $1) * 100_000).rounded() / 100_000
        }
        #expect(bounds == [0, 0, 0.72246, 0.96904, 0.98008, 0.995, 0.25529])
    }

    @Test("A bound of 0.98 doubles the interval, one of 0.995 makes it four times as long")
    func levels() {
        #expect([188, 189, 764, 765].map { trust($0).factor } == [1, 2, 2, 4])
        #expect([0, 1, 5].map { trust(1_000, missed: $0).factor } == [4, 2, 2])
        #expect([5, 60].map { trust(1_000, missed: $0).factor } == [2, 1])
        #expect(trust(0).factor == 1)
    }

    @Test("Silence ends the trust at once: fifty usual gaps, from an hour to a day")
    func silence() {
        func factor(after silence: Delay?, gap: Delay?) -> Int { trust(1_000, heardAgo: silence, gap: gap).factor }
        #expect([59, 61].map { factor(after: .minutes($0), gap: .seconds(1)) } == [4, 1])
        #expect([499, 501].map { factor(after: .minutes($0), gap: .minutes(10)) } == [4, 1])
        #expect([23, 25].map { factor(after: .hours($0), gap: .hours(3)) } == [4, 1])
        #expect([23, 25].map { factor(after: .hours($0), gap: nil) } == [4, 1])
        #expect(factor(after: nil, gap: nil) == 1)
        #expect(trust(1_000, heardAgo: .minutes(3), gap: .seconds(1), speedup: 60).isSilent)
    }

    @Test("The control group is one of twenty receipts, always the same ones")
    func controlGroup() {
        let receipts = (1...100_000).filter { SweepTrust.isControl(UInt64($0)) }
        #expect((4_800...5_200).contains(receipts.count))
        #expect(receipts == (1...100_000).filter { SweepTrust.isControl(UInt64($0)) })
    }

    /// Days until the refund check of a year's subscription, charged on day 0 and asked about on a day.
    private func sweep(on day: Int64, factor: Int, receipt: UInt64) -> Int64 {
        var policy = Policy.standard(for: .production)
        (policy.sweepStretch, policy.isSweepTrusted) = (factor, true)
        let start = now
        let input = ScheduleInput(
            state: .active, reason: nil, since: start, until: start + .days(365), accessEndsAt: start + .days(365),
            expiresAt: start + .days(365), headStartsAt: start, renewalExpected: true)
        let asked = start + .days(day)
        let plan = nextCheck(for: [input], environment: .production, now: asked, seed: receipt, policy: policy)
        guard case .at(let next) = plan else { return -1 }
        return (next - asked).milliseconds / Delay.days(1).milliseconds
    }

    @Test("Sweeps are longer by the factor, never beyond 30 days, and as before in the control group")
    func sweeps() throws {
        let control = try #require((1...).lazy.map { UInt64($0) }.first { SweepTrust.isControl($0) })
        let other = try #require((1...).lazy.map { UInt64($0) }.first { !SweepTrust.isControl($0) })
        let days: [Int64] = [1, 20, 70, 100]
        #expect(days.map { sweep(on: $0, factor: 1, receipt: other) } == [3, 7, 10, 30])
        #expect(days.map { sweep(on: $0, factor: 2, receipt: other) } == [6, 14, 20, 30])
        #expect(days.map { sweep(on: $0, factor: 4, receipt: other) } == [12, 28, 30, 30])
        #expect(days.map { sweep(on: $0, factor: 4, receipt: control) } == [3, 7, 10, 30])
    }

    @Test("A check that is due anyway serves for a longer sweep up to 30 days")
    func patience() {
        var policy = Policy.standard(for: .production)
        (policy.sweepStretch, policy.isSweepTrusted) = (4, true)
        let waits = [3, 12, 28, 30].map { PollingIntervals.sweepPatience(for: .days($0), policy) }
        #expect(waits == [.hours(36), .days(6), .days(2), .days(4)])
    }
}
