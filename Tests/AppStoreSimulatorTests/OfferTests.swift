import Testing

@testable import AppStoreSimulator

/// Offers, prices and products that are not for sale, as an outsider reads them.
@Suite("Offers and prices have Apple's fields and periods") struct OfferTests {
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    private func answer(_ kind: ScriptKind, after seconds: Double) throws -> [String: Any] {
        let customer = store.createCustomer(kind.script)
        hand.move(seconds: seconds)
        return try store.ask(customer.receipt)
    }

    private func values(_ rows: [[String: Any]], _ key: String) -> [String?] {
        rows.reversed().map { $0[key] as? String }
    }

    @Test("An offer makes three periods cheaper")
    func threeCheaperPeriods() throws {
        let rows = try answer(.payAsYouGo, after: 230).latestRows
        #expect(values(rows, "is_in_intro_offer_period") == ["true", "true", "true", "false"])
        #expect(values(rows, "is_trial_period") == ["false", "false", "false", "false"])
    }

    @Test("An offer paid up front lasts two periods")
    func paidUpFrontLastsTwoPeriods() throws {
        let rows = try answer(.payUpFront, after: 130).latestRows
        #expect(values(rows, "is_in_intro_offer_period") == ["true", "false"])
        #expect(values(rows, "expires_date_ms") == ["1736499720000", "1736499780000"])
    }

    @Test("A code is named in the rows and for the next renewal")
    func aCodeIsNamedInTheRowsAndForTheNextRenewal() throws {
        let customer = store.createCustomer(ScriptKind.offerCode.script)
        #expect(try store.ask(customer.receipt).pending["offer_code_ref_name"] as? String == "SPRING25")
        hand.move(seconds: 130)
        let answer = try store.ask(customer.receipt)
        #expect(values(answer.latestRows, "offer_code_ref_name") == ["SPRING25", "SPRING25", nil])
        #expect(answer.pending["offer_code_ref_name"] == nil)
    }

    @Test("A promotional offer begins at the next renewal")
    func aPromotionalOfferBeginsAtTheNextRenewal() throws {
        let customer = store.createCustomer(ScriptKind.promotionalOffer.script)
        hand.move(seconds: 40)
        let before = try store.ask(customer.receipt)
        #expect(before.pending["promotional_offer_id"] as? String == "winter50")
        #expect(before.latestRows[0]["promotional_offer_id"] == nil)
        hand.move(seconds: 150)
        let after = try store.ask(customer.receipt).latestRows
        #expect(values(after, "promotional_offer_id") == [nil, "winter50", "winter50", nil])
    }

    @Test("A customer who left comes back for an offer")
    func whoLeftComesBackForAnOffer() throws {
        let customer = store.createCustomer(ScriptKind.cancels.script)
        hand.move(seconds: 90)
        var redeem = CustomerAction(.redeemOffer)
        redeem.offer = .offerCode
        #expect(try store.act(redeem, on: customer.customer))
        let rows = try store.ask(customer.receipt).latestRows
        #expect(values(rows, "offer_code_ref_name") == [nil, "SPRING25"])
        redeem.offer = .freeTrial
        #expect(throws: ActionRefused.self) { try store.act(redeem, on: customer.customer) }
    }

    @Test("A higher price is asked for")
    func aHigherPriceIsAskedFor() throws {
        let asked = try answer(.priceRefused, after: 100).pending
        #expect(asked["price_consent_status"] as? String == "0")
        #expect(asked["price_increase_status"] as? String == "0")
        let given = try answer(.priceAccepted, after: 100).pending
        #expect(given["price_consent_status"] as? String == "1")
    }

    @Test("Ends have their reason", arguments: [(ScriptKind.priceRefused, "3"), (.withdrawn, "4"), (.brokenOff, "5")])
    func endsHaveTheirReason(kind: ScriptKind, intent: String) throws {
        let ended = try answer(kind, after: 125)
        #expect(ended.latestRows.count == 2)
        #expect(ended.pending["expiration_intent"] as? String == intent)
        #expect(ended.pending["auto_renew_status"] as? String == "0")
    }

    @Test("An agreed price is forgotten at the renewal")
    func anAgreedPriceIsForgottenAtTheRenewal() throws {
        let renewed = try answer(.priceAccepted, after: 125)
        #expect(renewed.latestRows.count == 3)
        #expect(renewed.pending["price_consent_status"] == nil)
    }

    @Test("A crossgrade of the same length is immediate")
    func aCrossgradeOfTheSameLengthIsImmediate() throws {
        let rows = try answer(.crossgrades, after: 95).latestRows
        #expect(values(rows, "is_upgraded") == [nil, "true", nil])
        #expect(values(rows, "product_id").last == "com.example.tracker.duo.monthly")
        #expect(Set(values(rows, "original_transaction_id")).count == 1)
    }

    @Test("A crossgrade of another length waits for the renewal")
    func aCrossgradeOfAnotherLengthWaitsForTheRenewal() throws {
        var script = CustomerScript()
        script.product = .magazineMonthly
        let customer = store.createCustomer(script)
        #expect(try store.act(CustomerAction.Kind.crossgrade.action, on: customer.customer))
        let before = try store.ask(customer.receipt)
        #expect(before.pending["auto_renew_product_id"] as? String == "com.example.tracker.magazine.yearly")
        hand.move(seconds: 61)
        let after = try store.ask(customer.receipt).latestRows
        #expect(values(after, "is_upgraded") == [nil, nil])
        #expect(after[0]["expires_date_ms"] as? String == "1736500380000")
    }
}
