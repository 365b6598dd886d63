import Testing

@testable import AppStoreSimulator

@Suite("An answer may lag behind the purchase") struct LagTests {
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    private func lag(_ members: String) throws -> Int {
        try store.control("POST", "/simulator/lag", "{\(members)}").code
    }

    @Test("A purchase of one customer shows so many seconds later")
    func oneCustomer() throws {
        let late = try Shopper("newcomer", in: store)
        let prompt = try Shopper("newcomer", in: store)
        hand.move(seconds: 10)
        #expect(try lag(#""seconds":2.5,"customer":"\#(late.name)""#) == 200)
        let bought = try late.buy(#""action":"buy","quantity":4"#)
        let other = try prompt.buy(#""action":"buy""#)
        #expect(try store.ask(other.receipt).latestRows.count == 1)
        hand.move(seconds: 2.499)
        let early = try store.ask(bought.receipt)
        #expect(early.status == 0 && early.latestRows.isEmpty && early.deviceRows.isEmpty)
        let asked = (early["receipt"] as? [String: Any])?.text("request_date_ms")
        #expect(asked == "1736499612499", "the answer itself is new")
        #expect(try late.deliveries().count == 1, "the truth does not lag")
        hand.move(seconds: 0.001)
        let shown = try store.ask(bought.receipt)
        #expect(shown.latestRows.texts("quantity") == ["4"] && shown.deviceRows.count == 1)
    }

    @Test("A subscription bought on request lags with its pending renewal")
    func aSubscription() throws {
        let shopper = try Shopper("newcomer", in: store)
        #expect(try lag(#""seconds":5"#) == 200)
        hand.move(seconds: 1)
        let bought = try shopper.buy(#""action":"subscribe","product":"weekly""#)
        #expect(try store.ask(bought.receipt)["pending_renewal_info"] == nil)
        hand.move(seconds: 5)
        let shown = try store.ask(bought.receipt)
        #expect(shown.latestRows.count == 1 && shown.pending.text("auto_renew_status") == "1")
        hand.move(seconds: 14)
        #expect(try store.ask(bought.receipt).latestRows.count == 1, "the renewal lags too")
        #expect(try store.control("DELETE", "/simulator/lag").json.number("lags") == 0)
        #expect(try store.ask(bought.receipt).latestRows.count == 2)
    }

    @Test("A share of the accounts lags, always the same ones")
    func aShare() throws {
        let shoppers = try (0..<60).map { _ in try Shopper("newcomer", in: store) }
        hand.move(seconds: 1)
        #expect(try lag(#""seconds":5,"share":0.5"#) == 200)
        let receipts = try shoppers.map { try $0.buy(#""action":"buy""#).receipt }
        let first = try receipts.map { try store.ask($0).latestRows.isEmpty }
        let second = try receipts.map { try store.ask($0).latestRows.isEmpty }
        #expect(first == second && (15...45).contains(first.count { $0 }), "\(first)")
        #expect(try lag(#""seconds":0"#) == 200, "the newest setting decides")
        #expect(try receipts.allSatisfy { try store.ask($0).latestRows.count == 1 })
    }

    @Test("Rubbish is refused")
    func whatIsRefused() throws {
        for odd in [#""seconds":-1"#, #""seconds":1e9"#, #""share":0.5"#, #""seconds":1,"share":2"#, #""seconds":"x""#]
        {
            #expect(try lag(odd) == 400, "\(odd)")
        }
        #expect(try lag(#""seconds":1,"customer":"c000099""#) == 404)
        #expect(try lag(#""seconds":1,"customer":"ghost""#) == 404)
    }
}
