import Testing

@testable import AppStoreSimulator

@Suite("Purchases of one Apple account reach every device, each as Apple shows it there") struct SharedPurchaseTests {
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    @Test("A restored lifetime purchase has its own id and date")
    func aRestoredPurchase() throws {
        let shopper = try Shopper("newcomer", in: store)
        let bought = try shopper.buy(#""action":"buy","item":"lifetime""#)
        _ = try shopper.buy(#""action":"buy","item":"season""#)
        _ = try shopper.buy(#""action":"buy""#)
        hand.move(seconds: 90)
        let id = try #require(bought.transaction.text("transaction_id"))
        let plain = try store.ask(try #require(store.receipt(of: shopper.name, writtenAt: .max)))
        let restored = try store.ask(try #require(store.receipt(of: shopper.name, writtenAt: .max, restore: 3)))
        #expect(plain.deviceRows.row(id)?.text("purchase_date_ms") == "1736499600000")
        let row = try #require(restored.deviceRows.first { $0.text("original_transaction_id") == id })
        #expect(row.text("transaction_id") != id)
        #expect(row.text("purchase_date_ms") == "1736499690000")
        #expect(row.text("original_purchase_date_ms") == "1736499600000")
        let names = ["lifetime", "season", "coins"].map { "com.example.tracker.\($0)" }
        #expect(plain.deviceRows.texts("product_id") == names)
        #expect(restored.deviceRows.texts("product_id") == Array(names.prefix(2)), "consumables never restore")
        #expect(restored.latestRows.texts("product_id") == names, "the server knows them")
        let alias = try #require(row.text("transaction_id"))
        #expect(try shopper.act(#""action":"refund_purchase","transaction_id":"\#(alias)""#).code == 200)
        #expect(try shopper.deliveries().map { $0["refunded_ms"] == nil } == [false, true, true])
    }

    @Test("Two customers of one Apple account see each other's purchases, with the buyer's token")
    func twoCustomers() throws {
        let made = try store.control(
            "POST", "/simulator/customers",
            #"{"script":{"subscribes":false,"begins_empty":true,"second_customer_after_months":0}}"#)
        let first = Shopper(of: try #require(made.json.text("customer")), in: store)
        let tokens = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"]
        hand.move(seconds: 1)
        let one = try first.buy(#""action":"buy","app_account_token":"\#(tokens[0])""#)
        hand.move(seconds: 1)
        let two = try first.second.buy(#""action":"buy","quantity":5,"app_account_token":"\#(tokens[1])""#)
        for receipt in [one.receipt, two.receipt] {
            let rows = try store.ask(receipt).latestRows
            #expect(rows.texts("app_account_token") == tokens && rows.texts("quantity") == ["1", "5"])
        }
        #expect(try store.ask(two.receipt).deviceRows.count == 2)
        let held = try store.control("GET", "/simulator/receipts/\(first.second.name)").json.text("receipt")
        #expect(held == two.receipt, "the device of the second customer has restored")
        let shown = try first.second.deliveries()
        #expect(shown.texts("customer") == [first.name, first.second.name])
        #expect(shown.texts("app_account_token") == tokens)
        let uploads = store.uploads().map { "\($0.customer) \($0.reason)" }
        #expect(uploads == ["\(first.second.name) restore", "\(first.name) purchase", "\(first.second.name) purchase"])
    }

    @Test("The one-time rows of a customer with a token carry it")
    func tokensOfTheSeed() throws {
        var script = CustomerScript()
        script.hasAccountToken = true
        script.ownsLifetime = true
        let customer = store.createCustomer(script)
        let rows = try store.ask(customer.receipt).latestRows
        #expect(rows.count == 2 && Set(rows.texts("app_account_token")) == [customer.appAccountToken])
    }
}

@Suite("Subscriptions are bought with a token") struct SubscribeTests {
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    @Test("A first subscription carries the token, and so do its renewals")
    func aFirstSubscription() throws {
        let shopper = try Shopper("newcomer", in: store)
        hand.move(seconds: 2.3)
        let token = "11111111-1111-4111-8111-111111111111"
        let bought = try shopper.buy(#""action":"subscribe","offer":"free_trial","app_account_token":"\#(token)""#)
        #expect(bought.transaction.text("product") == "com.example.tracker.monthly")
        #expect(bought.transaction.number("booked_ms") == 1_736_499_602_300)
        #expect(bought.transaction.number("expires_ms") == 1_736_499_617_000)
        #expect(try store.ask(bought.receipt).deviceRows.count == 1)
        #expect(try shopper.act(#""action":"subscribe","product":"weekly""#).code == 409, "the group is taken")
        let other = try shopper.buy(#""action":"subscribe","product":"magazine.monthly""#)
        #expect(
            other.transaction.text("original_transaction_id") != bought.transaction.text("original_transaction_id"))
        hand.move(seconds: 20)
        let rows = try store.ask(other.receipt).latestRows
        let own = rows.filter { $0.text("app_account_token") == token }
        #expect(own.count == 2 && rows.count == 3)
        #expect(try shopper.deliveries().texts("kind") == ["subscription", "subscription", "subscription"])
    }

    @Test("A comeback carries the token of its own purchase")
    func aComeback() throws {
        let shopper = try Shopper("cancels", in: store)
        hand.move(seconds: 100)
        let token = "11111111-1111-4111-8111-111111111111"
        let back = try shopper.buy(#""action":"resubscribe","app_account_token":"\#(token)""#)
        #expect(try store.ask(back.receipt).latestRows.texts("app_account_token") == [token, nil])
        #expect(try store.ask(back.receipt).deviceRows.count == 2)
        let id = try #require(try shopper.deliveries().first?.text("transaction_id"))
        hand.move(seconds: 1)
        #expect(try shopper.act(#""action":"refund","transaction_id":"\#(id)""#).code == 200)
        #expect(try shopper.deliveries().map { $0.number("refunded_ms") } == [1_736_499_701_000, nil])
        #expect(try shopper.act(#""action":"reverse_refund","transaction_id":"\#(id)""#).code == 200)
        #expect(try shopper.deliveries().map { $0.number("refunded_ms") } == [nil, nil])
    }

    @Test("A purchase that waits shows nothing until it is approved")
    func deferredPurchases() throws {
        let shopper = try Shopper("newcomer", in: store)
        let token = "11111111-1111-4111-8111-111111111111"
        let asked = try shopper.act(
            #""action":"buy","quantity":3,"deferred":true,"app_account_token":"\#(token)""#)
        let other = try shopper.act(#""action":"buy","item":"season","deferred":true"#)
        let id = try #require(asked.json.text("pending_id"))
        let otherID = try #require(other.json.text("pending_id"))
        #expect(asked.json["transaction"] == nil && asked.json["receipt"] == nil && id != otherID)
        let receipt = try #require(store.latestReceipt(of: shopper.name))
        #expect(try store.ask(receipt).latestRows.isEmpty)
        #expect((other.json["pending_purchases"] as? [[String: Any]])?.texts("pending_id") == [id, otherID])
        hand.move(seconds: 40)
        let bought = try shopper.buy(#""action":"approve","pending_id":"\#(id)""#)
        #expect(bought.transaction.number("purchase_ms") == 1_736_499_640_000)
        let rows = try store.ask(bought.receipt).latestRows
        #expect(rows.texts("quantity") == ["3"] && rows.texts("app_account_token") == [token])
        #expect(try shopper.act(#""action":"approve","pending_id":"\#(id)""#).code == 409)
        #expect(try shopper.act(#""action":"decline","pending_id":"\#(otherID)""#).code == 200)
        #expect(try shopper.act(#""action":"approve","pending_id":"\#(otherID)""#).code == 409)
        #expect(try shopper.deliveries().count == 1)
    }
}
