import Testing

@testable import AppStoreSimulator

@Suite("Subscriptions live by their seed and their script") struct LifeTests {
    static let seed: UInt64 = 20_250_110

    private func world(seed: UInt64 = seed) -> World {
        var options = SimulatorOptions(seed: seed)
        options.customers = 300
        options.sandboxCustomers = 30
        (options.traits.commitments, options.traits.groups, options.traits.seats) = (0.15, 0.15, 0.1)
        return World(options: options, epoch: StoreTime(milliseconds: ManualClock.start))
    }

    private func story(_ account: Account, in world: World) -> [String] {
        let truth = CustomerTruth(account, in: world)
        return truth.purchases.map { "\($0)" }
            + truth.subscriptions.flatMap { subscription in
                subscription.periods.map { "\($0)" } + subscription.log.map { "\($0)" }
                    + ["\(subscription.autoRenewStatus) \(String(describing: subscription.expirationIntent))"]
            }
    }

    private func account(_ index: Int, in world: World, after milliseconds: Int64) -> Account {
        var account = world.population.account(index)
        account.advance(to: StoreTime(milliseconds: ManualClock.start + milliseconds))
        return account
    }

    /// Looking often and looking once must show the same life.
    @Test("Many small steps equal one large step")
    func manySmallStepsEqualOneLargeStep() throws {
        print("seed \(Self.seed)")
        let world = world()
        let length: Int64 = 20 * 60_000
        for index in 0..<330 {
            var often = world.population.account(index)
            var numbers = SeededGenerator(seed: Self.seed, stream: UInt64(index))
            var now = ManualClock.start
            while now < ManualClock.start + length {
                often.advance(to: StoreTime(milliseconds: now))
                now += 1 + Int64(numbers.below(9000))
            }
            often.advance(to: StoreTime(milliseconds: ManualClock.start + length))
            let once = account(index, in: world, after: length)
            try #require(story(often, in: world) == story(once, in: world), "customer \(index)")
        }
    }

    /// Nothing that an answer shows changes between now and the announced next change.
    @Test("The next change is announced")
    func theNextChangeIsAnnounced() throws {
        print("seed \(Self.seed)")
        let world = world()
        for index in 0..<330 {
            var account = account(index, in: world, after: 0)
            for _ in 0..<20 {
                guard let next = account.nextChange else { break }
                try #require(next > account.now, "customer \(index)")
                let before = story(account, in: world)
                account.advance(to: next - 1)
                try #require(story(account, in: world) == before, "customer \(index)")
                account.advance(to: next)
            }
        }
    }

    @Test("The seed decides")
    func theSeedDecides() {
        func lives(_ seed: UInt64) -> [[String]] {
            let world = world(seed: seed)
            return (0..<50).map { story(account($0, in: world, after: 600_000), in: world) }
        }
        #expect(lives(1) == lives(1))
        #expect(lives(1) != lives(2))
    }

    /// A population of ordinary size shows every kind of lifeEvent within an hour.
    @Test("Every kind happens")
    func everyKindHappens() {
        print("seed \(Self.seed)")
        let world = world()
        var seen: Set<LifeEventKind> = []
        for index in 0..<330 {
            let account = account(index, in: world, after: 3_600_000)
            seen.formUnion(account.begun.flatMap { $0.lifeEvents.map { $0.kind } })
        }
        // Only who switches the plan twice takes a choice back.
        #expect(Set(LifeEventKind.allCases).subtracting(seen).isSubset(of: [.changeWithdrawn]))
    }

    @Test("Instants are whole seconds, periods do not overlap, logs rise")
    func wholeSecondsAndNoOverlapAndRisingLogs() throws {
        print("seed \(Self.seed)")
        let world = world()
        for index in 0..<330 {
            for life in account(index, in: world, after: 3_600_000).begun {
                for period in life.periods {
                    try #require(period.purchase.milliseconds % 1000 == 0 && period.expires.milliseconds % 1000 == 0)
                    try #require(period.purchase < period.expires)
                }
                // A refund that is taken back can leave a period beside the one that was bought meanwhile, and seats are
                // added beside others.
                let own = life.periods.filter { $0.seats.map { !$0.isAddition } ?? true }
                for (earlier, later) in zip(own, own.dropFirst()) where earlier.cancellations.isEmpty {
                    try #require(earlier.expires <= later.purchase, "customer \(index)")
                }
                for (earlier, later) in zip(life.lifeEvents, life.lifeEvents.dropFirst()) {
                    try #require(earlier.at <= later.at, "customer \(index)")
                }
            }
            for name in [CustomerName.first(index), CustomerName.second(index)] {
                try #require(CustomerName.index(of: name) == index)
            }
        }
    }

    @Test("Ids are never shared")
    func idsAreNeverShared() {
        var seen: Set<String> = []
        var count = 0
        for index in [0, 1, 299] {
            let ids = AccountIDs(index: index, environment: .production)
            for number in 0..<3 {
                for ordinal in stride(from: 0, to: Life.periodsMax, by: 7) {
                    for restore in 0..<3 {
                        seen.insert(ids.subscription(number).transactionID(of: ordinal, restore: restore))
                    }
                    count += 3
                }
            }
            for ordinal in 0..<1000 { seen.insert(ids.purchase(ordinal)) }
            count += 1000
        }
        #expect(seen.count == count)
    }
}
