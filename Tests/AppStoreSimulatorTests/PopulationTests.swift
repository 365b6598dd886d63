import Testing

@testable import AppStoreSimulator

@Suite("The population has every kind of customer, and new ones arrive") struct PopulationTests {
    static let seed: UInt64 = 1

    private func store(_ change: (inout SimulatorOptions) -> Void = { _ in }) -> (Simulator, ManualClock) {
        let hand = ManualClock()
        var options = SimulatorOptions(seed: Self.seed)
        change(&options)
        return (Simulator(options, clock: hand.clock), hand)
    }

    /// A thousand customers at the epoch: dozens of every trait, and of nearly everything that can have happened.
    @Test("A thousand customers include dozens of every kind")
    func aThousandCustomersHaveDozensOfEveryKind() {
        print("seed \(Self.seed)")
        let (store, _) = store { $0.customers = 1000 }
        let accounts = (0..<1000).compactMap { store.world.account($0, at: store.now) }
        func count(_ name: String, _ isMeant: (Account) -> Bool) {
            #expect(accounts.count(where: isMeant) >= 24, "\(name), seed \(Self.seed)")
        }
        for offer in PeriodOffer.allCases where offer != .promotional {
            count("\(offer)") { $0.script.startOffer == offer }
        }
        for quirk in ByteQuirk.allCases { count("\(quirk)") { $0.script.quirks.contains(quirk) } }
        for product in SubscriptionProduct.allCases where product != .magazineYearly {
            count("\(product)") { $0.lives.contains { $0.script.product == product } }
        }
        count("family") { $0.script.isFamilyShared }
        count("several subscriptions") { $0.lives.count > 1 }
        count("no subscription") { $0.lives.isEmpty }
        count("lifetime") { $0.script.ownsLifetime }
        count("coins") { $0.script.coinsEveryMonths != nil }
        count("restored") { $0.script.hasRestored }
        count("second customer") { $0.script.secondCustomerAfterMonths != nil }
        count("renewals sent") { $0.script.sendsRenewals }
        count("token") { $0.script.hasAccountToken }
        count("legacy") { $0.script.sendsLegacyReceipts }
        let rare: Set<LifeEventKind> = [
            .changeWithdrawn, .accountDeleted, .planSwitchScheduled, .seatsAdded, .seatsReduced, .seatsRefunded,
        ]
        for kind in LifeEventKind.allCases where !rare.contains(kind) {
            #expect(
                accounts.reduce(0) { $0 + $1.lives.reduce(0) { $0 + $1.lifeEvents.count { $0.kind == kind } } } >= 12,
                "\(kind), seed \(Self.seed)")
        }
    }

    @Test("A trait that is switched off is given to no customer")
    func nobodyHasTraitsThatAreSwitchedOff() {
        let (store, _) = store { $0.traits = .none }
        for index in 0..<200 {
            let script = store.world.population.account(index).script
            #expect(script.startOffer == nil && script.alongside.isEmpty && script.quirks.isEmpty)
            #expect(!script.sendsLegacyReceipts && !script.isFamilyShared && script.subscribes)
        }
    }

    /// A switched off trait does not change the others.
    @Test("Traits are drawn one by one")
    func traitsAreDrawnOneByOne() {
        let (all, _) = store()
        let (fewer, _) = store { $0.traits.coins = 0 }
        for index in 0..<200 {
            let (one, other) = (
                all.world.population.account(index).script, fewer.world.population.account(index).script
            )
            #expect(one.hasAccountToken == other.hasAccountToken && one.pastPeriods == other.pastPeriods)
        }
    }

    @Test("New customers arrive")
    func customersArrive() throws {
        let (store, hand) = store {
            $0.customers = 10
            $0.sandboxCustomers = 2
            $0.arrivalsPerMonth = 4
        }
        #expect(store.customerCount == 12)
        hand.move(seconds: 15)
        #expect(store.customerCount == 13)
        hand.move(seconds: 45)
        let receipts = store.receipts(from: 12)
        #expect(receipts.map { $0.customer } == ["c1000000", "c1000001", "c1000002", "c1000003"])
        #expect(try store.ask(receipts[3].receipt).isAnswered)
        #expect(store.createCustomer(CustomerScript()).customer == "c000012")
        #expect(store.truth(of: "c1000004") == nil)
        #expect(store.truth(of: "c1000003")?.subscriptions.first.map { $0.periods[0].purchase % 1000 } ?? 0 == 0)
    }

    /// A demo that runs alone for days still has customers whose subscription runs.
    @Test("Life goes on")
    func lifeGoesOn() {
        print("seed \(Self.seed)")
        let (store, hand) = store {
            $0.customers = 60
            $0.arrivalsPerMonth = 1
        }
        hand.move(seconds: 60 * 1500)
        let running = store.truth().count { $0.subscriptions.contains { $0.access == .paid } }
        // Of 1500 arrivals, those of the last forty months or so.
        #expect(running > 20, "seed \(Self.seed)")
    }

    @Test("Long lives keep renewing and answers stay bounded")
    func longLivesKeepRenewingAndAnswersStayBounded() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        var script = CustomerScript()
        script.product = .weekly
        let customer = store.createCustomer(script)
        hand.move(seconds: 15 * 1000 + 1)
        let answer = try store.ask(customer.receipt)
        #expect(answer.latestRows.count == AnswerBody.rowsMax)
        #expect(answer.latestRows[0]["expires_date_ms"] as? String == "\(ManualClock.start + 15 * 1001 * 1000)")
        let truth = try #require(store.truth(of: customer.customer)?.subscriptions.first)
        #expect(truth.periods.count == 1001 && truth.access == .paid)
    }
}

extension [String: Any] {
    /// A receipt was recognised, whatever became of it.
    fileprivate var isAnswered: Bool { [0, 21006, 21010].contains(status) || self["status"] as? String == "0" }
}
