import Subscriptions
import Testing

@testable import Tracking

@Suite("A batch is divided among apps and lanes") struct BatchPlanTests {
    @Test("A large app leaves room for small ones")
    func aLargeAppLeavesRoomForSmallOnes() {
        #expect(BatchPlan.shares(of: [1: 1000, 2: 5, 3: 1000], receiptsMax: 100) == [1: 48, 2: 5, 3: 47])
    }

    @Test("Where nothing is due, nothing is claimed")
    func nothingDueIsNothingClaimed() {
        #expect(BatchPlan.shares(of: [:], receiptsMax: 100).isEmpty)
        #expect(BatchPlan.shares(of: [1: 0], receiptsMax: 100).isEmpty)
    }

    @Test("More apps than places take turns")
    func moreAppsThanPlacesTakeTurns() {
        let due = Dictionary(uniqueKeysWithValues: (1...50).map { (Int32($0), 9) })
        var served: [Int32: Int] = [:]
        var first = Int32.min
        for _ in 0..<25 {
            let shares = BatchPlan.shares(of: due, receiptsMax: 4, first: first)
            #expect(shares.values.reduce(0, +) == 4)
            for (app, share) in shares { served[app, default: 0] += share }
            first = BatchPlan.next(after: shares, first: first)
        }
        #expect(served.count == 50)
        #expect(served.values.allSatisfy { $0 == 2 })
    }
}

@Suite("Lanes take turns by their share") struct LaneTurnTests {
    private func due(_ app: Int32, _ lane: Lane, _ receipts: Int) -> DueReceipts {
        DueReceipts(appID: app, lane: lane, receipts: receipts)
    }

    private var everywhere: [DueReceipts] {
        [Lane.sweep, .expiring, .imported, .new, .retry].map { due(1, $0, 1000) }
    }

    @Test("Seven of ten places are for receipts that a customer waits for")
    func sevenOfTenAreForReceiptsThatSomebodyWaitsFor() {
        var turns = LaneTurns()
        let quotas = turns.quotas(of: everywhere, granted: [1: 100])
        #expect(
            quotas == [
                due(1, .new, 30), due(1, .expiring, 40), due(1, .retry, 10), due(1, .imported, 10), due(1, .sweep, 10),
            ]
        )
    }

    @Test("A budget of single calls starves no lane")
    func aBudgetOfSingleCallsStarvesNoLane() {
        var turns = LaneTurns()
        var served: [Lane: Int] = [:]
        for _ in 0..<30 {
            for quota in turns.quotas(of: everywhere, granted: [1: 1]) {
                served[quota.lane, default: 0] += quota.receipts
            }
        }
        #expect(served == [.new: 9, .expiring: 12, .retry: 3, .imported: 3, .sweep: 3])
    }

    @Test("What one lane does not need is the most urgent ones")
    func whatOneLaneDoesNotNeedIsTheMostUrgentOnes() {
        var turns = LaneTurns()
        #expect(
            turns.quotas(of: [due(1, .sweep, 1000), due(1, .expiring, 12)], granted: [1: 100])
                == [due(1, .expiring, 12), due(1, .sweep, 88)])
        #expect(turns.quotas(of: [due(1, .new, 1000)], granted: [1: 7]) == [due(1, .new, 7)])
    }

    @Test("A budget is each app's own")
    func aBudgetIsEachAppsOwn() {
        var turns = LaneTurns()
        let quotas = turns.quotas(of: [due(1, .new, 10), due(2, .new, 10), due(3, .new, 10)], granted: [1: 2, 3: 99])
        #expect(quotas == [due(1, .new, 2), due(3, .new, 10)])
    }
}
