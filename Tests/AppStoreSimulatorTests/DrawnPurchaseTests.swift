import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("Drawn lives buy seasons and several coins when their traits say so") struct DrawnPurchaseTests {
    static let seed: UInt64 = 12

    private func store(_ change: (inout CustomerTraits) -> Void) -> (Simulator, ManualClock) {
        let hand = ManualClock()
        var options = SimulatorOptions(seed: Self.seed)
        options.customers = 60
        change(&options.traits)
        return (Simulator(options, clock: hand.clock), hand)
    }

    @Test("Coins come in quantities and seasons again and again")
    func quantitiesAndSeasons() throws {
        print("seed \(Self.seed)")
        let (store, hand) = store {
            $0.quantities = 1
            $0.seasons = 1
            $0.legacyReceipt = 0
        }
        hand.move(seconds: 600)
        let deliveries = store.truth().flatMap(\.deliveries)
        let coins = deliveries.filter { $0.kind == .consumable }
        #expect(Set(coins.map(\.quantity)) == Set(1...10), "seed \(Self.seed)")
        let seasons = deliveries.filter { $0.kind == .nonRenewing }
        #expect(seasons.count > 60 && seasons.allSatisfy { $0.isListed && $0.quantity == 1 })
        #expect(seasons.contains { $0.refunded != nil }, "seed \(Self.seed)")
        for customer in store.receipts() {
            let truth = try #require(store.truth(of: customer.customer))
            let receipt = try #require(store.latestReceipt(of: customer.customer))
            let answer = try store.ask(receipt, at: customer.environment)
            guard !truth.accountDeleted else { continue }
            let shown = answer.latestRows.filter { $0["web_order_line_item_id"] == nil && $0["expires_date"] == nil }
            let listed = truth.deliveries.filter { $0.isListed && $0.kind != .subscription }
            let quantities = Dictionary(listed.map { ($0.transactionID, String($0.quantity)) }) { one, _ in one }
            for row in shown {
                #expect(row.text("quantity") ?? String(row.number("quantity") ?? 0) == quantities[row.id ?? ""])
            }
            #expect(Set(shown.compactMap(\.id)) == Set(quantities.keys), "\(customer.customer), seed \(Self.seed)")
        }
    }

    /// Without the traits nothing changes, so a seed keeps its lives.
    @Test("The traits change nothing else")
    func nothingElseChanges() {
        let (plain, plainHand) = store { _ in }
        let (rich, richHand) = store {
            $0.quantities = 1
            $0.seasons = 1
        }
        plainHand.move(seconds: 300)
        richHand.move(seconds: 300)
        func subscriptions(_ store: Simulator) -> [[String]] {
            store.truth().map { $0.deliveries.filter { $0.kind == .subscription }.map(\.transactionID) }
        }
        #expect(subscriptions(plain) == subscriptions(rich))
        let bought = plain.truth().flatMap(\.deliveries).filter { $0.kind != .subscription }
        #expect(bought.allSatisfy { $0.quantity == 1 && $0.kind != .nonRenewing })
        #expect(bought.count > 20)
    }
}

@Suite("A purchase is made and shown over HTTP") struct BuyWireTests {
    @Test("A client buys, asks, finishes, is refunded and reads the truth")
    func aWholePurchase() async throws {
        var options = SimulatorOptions(seed: 21)
        options.port = 0
        options.customers = 0
        options.sandboxCustomers = 0
        let store = Simulator(options, clock: ManualClock().clock)
        try await store.serving { port in
            func post(_ path: String, _ body: String) async throws -> [String: Any] {
                let answer = try await RawConnection.exchange(RawConnection.post(path, body), port: port)
                #expect(answer.hasPrefix("HTTP/1.1 20"), "\(answer.prefix(200))")
                let found = try #require(answer.components(separatedBy: "\r\n\r\n").last)
                let json = try JSONSerialization.jsonObject(with: Data(found.utf8))
                return try #require(json as? [String: Any])
            }
            let made = try await post("/simulator/customers", #"{"kind":"newcomer"}"#)
            let actions = "/simulator/customers/\(try #require(made.text("customer")))/actions"
            let bought = try await post(actions, #"{"action":"buy","quantity":10}"#)
            let transaction = try #require(bought["transaction"] as? [String: Any])
            let id = try #require(transaction.id)
            let request = ["receipt-data": try #require(bought.text("receipt")), "password": store.sharedSecret]
            let body = String(decoding: try JSONSerialization.data(withJSONObject: request), as: UTF8.self)
            #expect(try await post("/verifyReceipt", body).latestRows.texts("quantity") == ["10"])
            _ = try await post(actions, #"{"action":"refund_purchase","transaction_id":"\#(id)"}"#)
            #expect(try await post("/verifyReceipt", body).latestRows.first?["cancellation_date_ms"] != nil)
            let finished = try await post(actions, #"{"action":"finish","transaction_id":"\#(id)"}"#)
            #expect(try await post("/verifyReceipt", body).latestRows.isEmpty)
            let delivery = try #require((finished["deliveries"] as? [[String: Any]])?.first)
            #expect(delivery.number("quantity") == 10 && delivery.number("refunded_ms") == ManualClock.start)
        }
    }
}

extension [String: Any] {
    var id: String? { text("transaction_id") }
}
