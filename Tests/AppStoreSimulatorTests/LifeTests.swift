import Testing

@testable import AppStoreSimulator

@Suite struct LifeTests {
    static let seed: UInt64 = 20_250_110

    private func population(seed: UInt64 = seed) -> Population {
        Population(
            seed: seed, epoch: Moment(milliseconds: HandClock.start), scale: TimeScale(monthSeconds: 60),
            pastPeriodsMax: 6, customers: 300, sandboxCustomers: 30)
    }

    private func truth(_ customer: Customer) -> [String] {
        let truth = CustomerTruth(customer, bundleID: "app")
        return truth.subscriptions.flatMap { subscription in
            subscription.periods.map { "\($0)" } + subscription.log.map { "\($0)" }
                + ["\(subscription.autoRenewStatus) \(String(describing: subscription.expirationIntent))"]
        }
    }

    /// Looking often and looking once must show the same life.
    @Test func manySmallStepsEqualOneLargeStep() throws {
        print("seed \(Self.seed)")
        let end = Moment(milliseconds: HandClock.start + 20 * 60_000)
        for index in 0..<330 {
            var often = population().customer(index)
            var once = population().customer(index)
            var numbers = SeededGenerator(seed: Self.seed, stream: UInt64(index))
            var now = HandClock.start
            while now < end.milliseconds {
                often.life.advance(to: Moment(milliseconds: now))
                now += 1 + Int64(numbers.below(9000))
            }
            often.life.advance(to: end)
            once.life.advance(to: end)
            try #require(truth(often) == truth(once), "customer \(index)")
        }
    }

    @Test func theSeedDecides() {
        func lives(_ seed: UInt64) -> [[String]] {
            (0..<50).map { index in
                var customer = population(seed: seed).customer(index)
                customer.life.advance(to: Moment(milliseconds: HandClock.start + 600_000))
                return truth(customer)
            }
        }
        #expect(lives(1) == lives(1))
        #expect(lives(1) != lives(2))
    }

    /// A population of ordinary size shows every kind of happening within an hour.
    @Test func everyKindHappens() {
        print("seed \(Self.seed)")
        var seen: Set<HappeningKind> = []
        for index in 0..<330 {
            var customer = population().customer(index)
            customer.life.advance(to: Moment(milliseconds: HandClock.start + 3_600_000))
            seen.formUnion(customer.life.happenings.map { $0.kind })
        }
        // Nobody of the drawn customers takes a chosen product back.
        #expect(Set(HappeningKind.allCases).subtracting(seen) == [.changeWithdrawn])
    }

    @Test func wholeSecondsAndNoOverlapAndRisingLogs() throws {
        print("seed \(Self.seed)")
        for index in 0..<330 {
            var customer = population().customer(index)
            customer.life.advance(to: Moment(milliseconds: HandClock.start + 3_600_000))
            let life = customer.life
            for period in life.periods {
                try #require(period.purchase.milliseconds % 1000 == 0 && period.expires.milliseconds % 1000 == 0)
                try #require(period.purchase < period.expires)
            }
            for (earlier, later) in zip(life.periods, life.periods.dropFirst()) where earlier.cancellation == nil {
                try #require(earlier.expires <= later.purchase, "customer \(index)")
            }
            for (earlier, later) in zip(life.happenings, life.happenings.dropFirst()) {
                try #require(earlier.at <= later.at, "customer \(index)")
            }
            let name = Customer.name(of: index)
            try #require(Customer.index(of: name) == index)
        }
    }

    @Test func idsAreNeverShared() {
        var seen: Set<String> = []
        var count = 0
        for index in [0, 1, 2, 299] {
            let ids = CustomerIDs(index: index, environment: .production)
            for ordinal in 0..<Life.periodsMax {
                seen.insert(ids.transactionID(of: ordinal))
                seen.insert(ids.restoredTransactionID(of: ordinal))
                count += 2
            }
            seen.insert(ids.lifetimeTransactionID)
            count += 1
        }
        #expect(seen.count == count)
    }
}
