import Ledger
import Testing

@testable import Tracking

@Suite struct BatchPlanTests {
    private func due(_ app: Int32, _ lane: Lane, _ receipts: Int) -> DueReceipts {
        DueReceipts(appID: app, lane: lane, receipts: receipts)
    }

    @Test func urgentLanesComeFirst() {
        let shares = BatchPlan.shares(
            of: [due(1, .sweep, 100), due(1, .edge, 30), due(1, .new, 80)], receiptsMax: 100, sweepFirst: false)
        #expect(shares == [due(1, .new, 80), due(1, .edge, 20)])
    }

    @Test func nowAndThenTheSweepComesFirst() {
        let shares = BatchPlan.shares(
            of: [due(1, .new, 100), due(1, .sweep, 10)], receiptsMax: 100, sweepFirst: true)
        #expect(shares == [due(1, .sweep, 10), due(1, .new, 90)])
    }

    @Test func aLargeAppLeavesRoomForSmallOnes() {
        let shares = BatchPlan.shares(
            of: [due(1, .edge, 100), due(2, .edge, 5), due(3, .edge, 100)], receiptsMax: 100, sweepFirst: false)
        #expect(shares.first { $0.appID == 2 } == due(2, .edge, 5))
        #expect(shares.reduce(0) { $0 + $1.receipts } == 100)
        #expect(shares.allSatisfy { $0.receipts >= 5 })
    }

    @Test func aBudgetCutsTheLeastUrgent() {
        let quotas = BatchPlan.quotas(
            of: [due(1, .new, 10), due(1, .edge, 10), due(2, .edge, 10)], granted: [1: 12], sweepFirst: false)
        #expect(quotas == [due(1, .new, 10), due(1, .edge, 2)])
    }

    @Test func nothingDueIsNothingClaimed() {
        #expect(BatchPlan.shares(of: [], receiptsMax: 100, sweepFirst: false).isEmpty)
    }
}

@Suite struct BreakerTests {
    @Test func pausesGrowWhileNobodyAnswersAndEndWithAnAnswer() {
        var breaker = Breaker()
        breaker.record(asked: 20, troubled: 20)
        breaker.record(asked: 3, troubled: 2)
        #expect(breaker.pauseSeconds == 0)
        var pauses: [Double] = []
        for _ in 0..<8 {
            breaker.record(asked: 3, troubled: 3)
            pauses.append(breaker.pauseSeconds)
        }
        #expect(pauses == [2, 4, 8, 16, 32, 60, 60, 60])
        breaker.record(asked: 10, troubled: 5)
        #expect(breaker.pauseSeconds == 0)
    }

    @Test func aFewFailuresAmongManyAnswersAreNothing() {
        var breaker = Breaker()
        for _ in 0..<30 { breaker.record(asked: 1, troubled: 1) }
        #expect(breaker.failures > 0)
        breaker = Breaker()
        for number in 0..<300 { breaker.record(asked: 1, troubled: number % 10 < 4 ? 1 : 0) }
        #expect(breaker.failures == 0)
        for _ in 0..<19 { breaker.record(asked: 1, troubled: 1) }
        #expect(breaker.failures == 0)
    }
}
