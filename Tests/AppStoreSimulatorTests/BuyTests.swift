import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("A purchase over the control API shows as Apple shows it") struct BuyTests {
    static let token = "3F2504E0-4F89-41D3-9A0C-0305E82C3301"
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    @Test("A newcomer has an empty receipt")
    func aNewcomerHasAnEmptyReceipt() throws {
        let shopper = try Shopper("newcomer", in: store)
        let receipt = try #require(store.latestReceipt(of: shopper.name))
        let answer = try store.ask(receipt)
        #expect(answer.status == 0 && answer.deviceRows.isEmpty && answer.latestRows.isEmpty)
        #expect(try shopper.deliveries().isEmpty)
    }

    @Test("Coins carry their quantity and the token of the purchase")
    func quantityAndToken() throws {
        let shopper = try Shopper("newcomer", in: store)
        hand.move(seconds: 1.5)
        let bought = try shopper.buy(
            #""action":"buy","item":"coins","quantity":7,"app_account_token":"\#(Self.token)""#)
        let answer = try store.ask(bought.receipt)
        let row = try #require(answer.latestRows.first)
        #expect(row.text("quantity") == "7" && row.text("app_account_token") == Self.token.lowercased())
        #expect(row.text("purchase_date_ms") == "1736499601000")
        #expect(answer.deviceRows.first?.text("quantity") == "7")
        #expect(answer.deviceRows.first?["app_account_token"] == nil, "a receipt of a device has no tokens")
        #expect(row.text("transaction_id") == bought.transaction.text("transaction_id"))
        #expect(row.text("original_transaction_id") == bought.transaction.text("original_transaction_id"))
        #expect(bought.transaction.number("quantity") == 7)
        #expect(bought.transaction.text("product") == "com.example.tracker.coins")
        #expect(bought.transaction.number("purchase_ms") == 1_736_499_601_000)
        #expect(bought.transaction.number("booked_ms") == 1_736_499_601_500)
        #expect(bought.transaction.text("customer") == shopper.name)
        #expect(bought.transaction.text("app_account_token") == Self.token.lowercased())
        #expect(try shopper.deliveries().texts("transaction_id") == [bought.transaction.text("transaction_id")])
    }

    @Test("Coins stay listed until they are finished, and in the truth for good")
    func coinsLeaveWhenTheyAreFinished() throws {
        let shopper = try Shopper("newcomer", in: store)
        let first = try shopper.buy(#""action":"buy","quantity":2"#)
        hand.move(seconds: 600)
        let second = try shopper.buy(#""action":"buy","quantity":3"#)
        #expect(try store.ask(second.receipt).latestRows.texts("quantity") == ["2", "3"])
        hand.move(seconds: 1)
        let id = try #require(first.transaction.text("transaction_id"))
        #expect(try shopper.act(#""action":"finish","transaction_id":"\#(id)""#).code == 200)
        #expect(try store.ask(second.receipt).latestRows.texts("quantity") == ["3"])
        #expect(try store.ask(first.receipt).deviceRows.texts("quantity") == ["2"], "that receipt is frozen")
        let newest = try #require(store.receipt(of: shopper.name, writtenAt: .max))
        #expect(try store.ask(newest).deviceRows.texts("quantity") == ["3"])
        #expect(try shopper.act(#""action":"finish","transaction_id":"\#(id)""#).code == 200, "once more is harmless")
        let shown = try shopper.deliveries()
        #expect(shown.map { $0.number("quantity") } == [2, 3])
        #expect(shown.map { $0.number("finished_ms") } == [1_736_500_201_000, nil])
        #expect(shown.map { $0["listed"] as? Bool } == [false, true])
    }

    @Test("A season has no expiry and stays, finished or not")
    func aSeasonStays() throws {
        let shopper = try Shopper("newcomer", in: store)
        let season = try shopper.buy(#""action":"buy","item":"season","quantity":2"#)
        let id = try #require(season.transaction.text("transaction_id"))
        #expect(try shopper.act(#""action":"finish","transaction_id":"\#(id)""#).code == 200)
        hand.move(seconds: 6000)
        let again = try shopper.buy(#""action":"buy","item":"season""#)
        let rows = try store.ask(again.receipt).latestRows
        #expect(rows.texts("product_id") == ["com.example.tracker.season", "com.example.tracker.season"])
        #expect(rows.texts("quantity") == ["2", "1"])
        #expect(rows.allSatisfy { $0["expires_date_ms"] == nil && $0["web_order_line_item_id"] == nil })
        #expect(try shopper.deliveries().texts("kind") == ["non_renewing", "non_renewing"])
    }

    @Test("A named purchase is refunded, and the refund is reversed")
    func refundAndReversal() throws {
        let shopper = try Shopper("newcomer", in: store)
        let bought = try shopper.buy(#""action":"buy","quantity":2"#)
        _ = try shopper.buy(#""action":"buy","quantity":3"#)
        let id = try #require(bought.transaction.text("transaction_id"))
        func row() throws -> [String: Any]? { try store.ask(bought.receipt).latestRows.row(id) }
        let named = #""transaction_id":"\#(id)""#
        hand.move(seconds: 2)
        #expect(try shopper.act(#""action":"refund_purchase",\#(named)"#).code == 200)
        #expect(try row()?.text("cancellation_date_ms") == "1736499602000")
        #expect(try shopper.act(#""action":"refund_purchase",\#(named)"#).code == 409)
        hand.move(seconds: 3)
        #expect(try shopper.act(#""action":"reverse_purchase_refund",\#(named)"#).code == 200)
        #expect(try row()?["cancellation_date_ms"] == nil)
        hand.move(seconds: 4)
        #expect(try shopper.act(#""action":"refund_purchase",\#(named)"#).code == 200)
        let shown = try #require(try shopper.deliveries().first)
        #expect(shown.number("refunded_ms") == 1_736_499_609_000)
        let refunds = try #require(shown["refunds"] as? [[String: Any]])
        #expect(refunds.map { $0.number("at_ms") } == [1_736_499_602_000, 1_736_499_609_000])
        #expect(refunds.map { $0.number("reversed_ms") } == [1_736_499_605_000, nil])
        #expect(try shopper.deliveries().last?["refunded_ms"] == nil)
        let then = try store.control("GET", "/simulator/truth/\(shopper.name)?at=1736499606000").json
        #expect((then["deliveries"] as? [[String: Any]])?.first?["refunded_ms"] == nil)
    }

    @Test("Rubbish is refused with a sentence and changes nothing")
    func whatIsRefused() throws {
        let shopper = try Shopper("newcomer", in: store)
        _ = try shopper.buy(#""action":"buy","item":"lifetime""#)
        for (members, code) in [
            (#""action":"buy","quantity":0"#, 400), (#""action":"buy","quantity":1000"#, 400),
            (#""action":"buy","quantity":-1"#, 400), (#""action":"buy","quantity":"many""#, 400),
            (#""action":"buy","item":"ghost""#, 400), (#""action":"buy","app_account_token":"me""#, 400),
            (#""action":"buy","item":"lifetime""#, 409), (#""action":"buy","item":"lifetime","quantity":2"#, 409),
            (#""action":"finish""#, 409), (#""action":"finish","transaction_id":"1""#, 409),
            (#""action":"finish","transaction_id":"ghost""#, 409),
            (#""action":"refund_purchase","transaction_id":"570000003500001""#, 409),
            (#""action":"reverse_purchase_refund""#, 409), (#""action":"refund","transaction_id":"1""#, 409),
            (#""action":"resubscribe""#, 409), (#""action":"approve","pending_id":"1""#, 409),
            (#""action":"decline""#, 409), (#""action":"subscribe","product":"ghost""#, 400),
            (#""action":"subscribe","offer":"promotional""#, 409),
        ] {
            let answer = try shopper.act(members)
            #expect(answer.code == code && answer.json.text("error")?.isEmpty == false, "\(members): \(answer)")
        }
        #expect(try shopper.second.act(#""action":"buy""#).code == 409, "the account has no second customer")
        #expect(try shopper.deliveries().count == 1)
        #expect(try Shopper("legacy", in: store).act(#""action":"buy""#).code == 409, "its receipts show none")
        let unclear = try shopper.act(#""action":"buy","quantity":11"#).json.text("error")
        #expect(unclear == "quantity: a purchase has 1 to 10 pieces")
    }
}
