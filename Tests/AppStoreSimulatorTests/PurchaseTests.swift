import Testing

@testable import AppStoreSimulator

@Suite("One-time purchases appear in answers as Apple shows them") struct PurchaseTests {
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    private func rows(_ customer: SimulatedCustomer, of product: String) throws -> [[String: Any]] {
        try store.ask(customer.receipt).latestRows.filter {
            $0["product_id"] as? String == "com.example.tracker." + product
        }
    }

    @Test("Coins are bought again and again and vanish")
    func coinsAreBoughtAgainAndAgainAndVanish() throws {
        let customer = store.createCustomer(ScriptKind.buysCoins.script)
        var seen: Set<String> = []
        for _ in 0..<60 {
            hand.move(seconds: 5)
            for row in try rows(customer, of: "coins") {
                #expect(row["expires_date_ms"] == nil && row["web_order_line_item_id"] == nil)
                seen.insert(try #require(row["transaction_id"] as? String))
            }
        }
        let truth = try #require(store.truth(of: customer.customer))
        let coins = truth.purchases.filter { $0.product.hasSuffix(".coins") }
        #expect(seen == Set(coins.map { $0.transactionID }))
        #expect(coins.count > 5)
        let listed = coins.filter { $0.isListed }.map { $0.transactionID }
        #expect(Set(try rows(customer, of: "coins").compactMap { $0["transaction_id"] as? String }) == Set(listed))
        #expect(listed.count < coins.count)
        #expect(try rows(customer, of: "lifetime").count == 1)
    }

    @Test("A purchase is refunded")
    func aPurchaseIsRefunded() throws {
        let customer = store.createCustomer(CustomerScript())
        var buy = CustomerAction(.buy)
        buy.item = .lifetime
        #expect(throws: ActionRefused.self) { try store.act(CustomerAction(.refundPurchase), on: customer.customer) }
        #expect(try store.act(buy, on: customer.customer))
        hand.move(seconds: 3)
        #expect(try store.act(CustomerAction(.refundPurchase), on: customer.customer))
        let row = try #require(try rows(customer, of: "lifetime").first)
        #expect(row["cancellation_date_ms"] as? String == "1736499603000")
        #expect(store.truth(of: customer.customer)?.purchases.first?.refunded == 1_736_499_603_000)
    }

    @Test("A customer may have purchases and no subscription")
    func somebodyWithoutASubscription() throws {
        var script = CustomerScript()
        script.subscribes = false
        script.coinsEveryMonths = 1
        let customer = store.createCustomer(script)
        hand.move(seconds: 40)
        let answer = try store.ask(customer.receipt)
        #expect(answer.status == 0 && answer["pending_renewal_info"] == nil)
        #expect(answer.deviceRows.count == 1 && answer.latestRows.count == 2)
        #expect(answer.deviceRows[0]["transaction_id"] as? String == customer.originalTransactionID)
        #expect(store.truth(of: customer.customer)?.subscriptions.count == 0)
    }
}
