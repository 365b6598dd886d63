import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("A kept answer equals a newly written one") struct KeptAnswerTests {
    static let seed: UInt64 = 5

    private func stores(_ hand: ManualClock, _ options: SimulatorOptions) -> (Simulator, Simulator) {
        var forgetful = options
        forgetful.keptAnswerBytesMax = 0
        return (Simulator(options, clock: hand.clock), Simulator(forgetful, clock: hand.clock))
    }

    private func request(_ receipt: String, _ store: Simulator) throws -> [UInt8] {
        Array(
            try JSONSerialization.data(withJSONObject: ["receipt-data": receipt, "password": store.sharedSecret]))
    }

    @Test("A kept answer equals a new one")
    func aKeptAnswerIsTheAnswer() throws {
        print("seed \(Self.seed)")
        let hand = ManualClock()
        var options = SimulatorOptions(seed: Self.seed)
        options.customers = 40
        let (keeping, forgetful) = stores(hand, options)
        for _ in 0..<40 {
            hand.move(seconds: 3.127)
            for customer in keeping.receipts() {
                let body = try request(customer.receipt, keeping)
                let answer = keeping.answer(body, at: customer.environment)
                #expect(answer == forgetful.answer(body, at: customer.environment), "\(customer.customer)")
            }
        }
    }

    /// What was thrown away counts no more, or every later call would throw everything away again.
    @Test("Room is made once")
    func roomIsMadeOnce() throws {
        let answer = RenderedAnswer(whole: [UInt8](repeating: 0, count: 1000))
        let shard = Shard(keptBytesMax: 10_500)
        let world = World(options: SimulatorOptions(), epoch: StoreTime(milliseconds: ManualClock.start))
        var made = 0
        for index in Array(0..<15) + Array(10..<15) {
            let identity = ReceiptIdentity(
                customer: index, creation: world.population.epoch, environment: .production)
            let found = shard.answer(
                index, at: world.population.epoch,
                for: KnownAccount.AnswerKey(identity: identity, excludesOldTransactions: false),
                made: { CustomerScript().account(index, in: world) },
                rendered: { _ in
                    made += 1
                    return answer
                })
            #expect(found != nil)
        }
        #expect(made == 15, "the last five were kept")
        #expect(shard.keptBytes == 5000)
    }

    @Test("Only the request date moves")
    func onlyTheRequestDateMoves() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        let customer = store.createCustomer(CustomerScript())
        let body = try request(customer.receipt, store)
        let first = String(decoding: store.answer(body, at: .production), as: UTF8.self)
        hand.move(seconds: 7.25)
        let second = String(decoding: store.answer(body, at: .production), as: UTF8.self)
        let moved =
            first
            .replacingOccurrences(
                of: #""request_date":"2025-01-10 09:00:00 Etc/GMT","request_date_ms":"1736499600000""#,
                with: #""request_date":"2025-01-10 09:00:07 Etc/GMT","request_date_ms":"1736499607250""#
            )
            .replacingOccurrences(
                of: #""request_date_pst":"2025-01-10 01:00:00"#, with: #""request_date_pst":"2025-01-10 01:00:07"#)
        #expect(first != second && moved == second)
    }

    @Test("Still lives have moving request dates")
    func stillLivesHaveMovingRequestDates() throws {
        let hand = ManualClock()
        var options = SimulatorOptions(seed: Self.seed)
        options.customers = 30
        options.arrivalsPerMonth = 100
        options.standsStill = true
        options.traits = .none
        let store = Simulator(options, clock: hand.clock)
        let before = try store.receipts().map { try store.ask($0.receipt, at: $0.environment) }
        hand.move(seconds: 3600)
        let after = try store.receipts().map { try store.ask($0.receipt, at: $0.environment) }
        #expect(before.count == after.count && before.count == store.customerCount)
        for (one, other) in zip(before, after) {
            #expect(NSDictionary(dictionary: ["rows": one.latestRows]) == ["rows": other.latestRows])
            let dates = [one, other].map { ($0["receipt"] as? [String: Any])?["request_date_ms"] as? String }
            guard one.status == 0 else { continue }
            #expect(dates == ["1736499600000", "1736503200000"])
        }
    }

    /// Many at once, while lives go on and people act: every answer is whole and about the right subscription.
    @Test("Many calls at once get whole answers about the right subscription")
    func manyAtOnce() async throws {
        let hand = ManualClock()
        var options = SimulatorOptions(seed: Self.seed)
        options.customers = 20
        options.traits = .none
        options.chances.accountDeletions = 0
        let store = Simulator(options, clock: hand.clock)
        let customers = store.receipts().filter { $0.environment == .production }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    for round in 0..<60 {
                        let customer = customers[(worker + round) % customers.count]
                        let answer = try store.ask(customer.receipt)
                        #expect(answer.status == 0)
                        #expect(
                            answer.pending["original_transaction_id"] as? String == customer.originalTransactionID)
                        _ = try? store.act(
                            CustomerAction(round.isMultiple(of: 2) ? .extend : .buy), on: customer.customer)
                        hand.move(seconds: 0.4)
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

extension CustomerScript {
    /// An account that lives by this script from the epoch on.
    fileprivate func account(_ index: Int, in world: World) -> Account {
        world.population.account(index, script: self, environment: .production, anchor: world.population.epoch)
    }
}
