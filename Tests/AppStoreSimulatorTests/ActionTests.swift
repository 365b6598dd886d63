import Testing

@testable import AppStoreSimulator

@Suite("A customer's action changes the answers as with Apple") struct ActionTests {
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    private func act(_ kind: CustomerAction.Kind, on customer: SimulatedCustomer) throws {
        try #require(try store.act(kind.action, on: customer.customer))
    }

    private func text(_ value: Any?) -> String? { value as? String }

    @Test("A refund is booked, and so is its reversal")
    func refundAndItsReversal() throws {
        let customer = store.createCustomer(CustomerScript())
        hand.move(seconds: 30.5)
        try act(.refund, on: customer)
        var answer = try store.ask(customer.receipt)
        #expect(text(answer.latestRows[0]["cancellation_date_ms"]) == "1736499630500")
        #expect(text(answer.latestRows[0]["cancellation_reason"]) == "0")
        #expect(text(answer.pending["auto_renew_status"]) == "0")
        #expect(text(answer.pending["expiration_intent"]) == "1")
        hand.move(seconds: 5)
        try act(.reverseRefund, on: customer)
        answer = try store.ask(customer.receipt)
        #expect(answer.latestRows[0]["cancellation_date_ms"] == nil)
        #expect(answer.pending["expiration_intent"] == nil)
        hand.move(seconds: 30)
        #expect(text(try store.ask(customer.receipt).pending["expiration_intent"]) == "1")
    }

    @Test("A refund that keeps renewal renews")
    func aRefundThatKeepsRenewalRenews() throws {
        let customer = store.createCustomer(CustomerScript())
        var refund = CustomerAction(.refund)
        refund.keepsRenewal = true
        #expect(try store.act(refund, on: customer.customer))
        hand.move(seconds: 61)
        let answer = try store.ask(customer.receipt)
        #expect(answer.latestRows.count == 2)
        #expect(answer.latestRows[0]["cancellation_date_ms"] == nil)
        #expect(answer.latestRows[1]["cancellation_date_ms"] != nil)
    }

    @Test("Renewal is switched off and on")
    func renewalOffAndOn() throws {
        let customer = store.createCustomer(CustomerScript())
        try act(.disableRenewal, on: customer)
        #expect(text(try store.ask(customer.receipt).pending["auto_renew_status"]) == "0")
        #expect(throws: ActionRefused.self) { try act(.disableRenewal, on: customer) }
        try act(.enableRenewal, on: customer)
        hand.move(seconds: 61)
        #expect(try store.ask(customer.receipt).latestRows.count == 2)
        try act(.disableRenewal, on: customer)
        hand.move(seconds: 60)
        let answer = try store.ask(customer.receipt)
        #expect(answer.latestRows.count == 2)
        #expect(text(answer.pending["expiration_intent"]) == "1")
        try act(.resubscribe, on: customer)
        let back = try store.ask(customer.receipt)
        #expect(back.latestRows.count == 3 && back.pending["expiration_intent"] == nil)
        #expect(Set(back.latestRows.compactMap { text($0["original_transaction_id"]) }).count == 1)
    }

    @Test("Upgrade after an early charge voids the future row")
    func upgradeAfterAnEarlyChargeVoidsTheFutureRow() throws {
        var script = CustomerScript()
        script.chargeHabit = .early
        let customer = store.createCustomer(script)
        hand.move(seconds: 59.99)
        let early = try store.ask(customer.receipt)
        #expect(early.latestRows.count == 2, "the renewal shows before the period is over")
        try act(.upgrade, on: customer)
        let rows = try store.ask(customer.receipt).latestRows
        #expect(rows.map { text($0["is_upgraded"]) } == [nil, "true", nil])
        #expect(text(rows[0]["product_id"]) == "com.example.tracker.plus.monthly")
        #expect(text(rows[0]["purchase_date_ms"]) == "1736499659000")
    }

    @Test("Sandbox upgrades have no cancellation date")
    func sandboxUpgradesHaveNoCancellationDate() throws {
        let customer = store.createCustomer(CustomerScript(), environment: .sandbox)
        try act(.upgrade, on: customer)
        let rows = try store.ask(customer.receipt, at: .sandbox).latestRows
        #expect(text(rows[0]["is_upgraded"]) == "true")
        #expect(rows[0]["cancellation_date_ms"] == nil)
    }

    @Test("A downgrade waits for the renewal and can be taken back")
    func downgradeAndChangeOfMind() throws {
        let customer = store.createCustomer(ScriptKind.loyal.script)
        var weekly = CustomerAction(.downgrade)
        weekly.product = .weekly
        #expect(try store.act(weekly, on: customer.customer))
        #expect(
            text(try store.ask(customer.receipt).pending["auto_renew_product_id"]) == "com.example.tracker.weekly")
        var monthly = CustomerAction(.downgrade)
        monthly.product = .monthly
        #expect(try store.act(monthly, on: customer.customer))
        let log = try #require(store.truth(of: customer.customer)?.subscriptions.first?.log)
        #expect(log.map { $0.kind } == [.purchased, .downgradeScheduled, .changeWithdrawn])
    }

    @Test("A billing failure starts on request")
    func billingTroubleByHand() throws {
        var script = CustomerScript()
        script.hasGrace = true
        let customer = store.createCustomer(script)
        try act(.failBilling, on: customer)
        #expect(try store.ask(customer.receipt).pending["is_in_billing_retry_period"] == nil)
        hand.move(seconds: 61)
        let failed = try store.ask(customer.receipt).pending
        #expect(text(failed["is_in_billing_retry_period"]) == "1")
        #expect(text(failed["grace_period_expires_date_ms"]) == "1736499692000")
        hand.move(seconds: 1)
        try act(.recover, on: customer)
        let answer = try store.ask(customer.receipt)
        #expect(answer.latestRows.count == 2 && answer.pending["grace_period_expires_date_ms"] == nil)
        #expect(text(answer.latestRows[0]["purchase_date_ms"]) == text(answer.latestRows[1]["expires_date_ms"]))
    }

    @Test("Extension keeps the line item")
    func extensionKeepsTheLineItem() throws {
        let customer = store.createCustomer(CustomerScript())
        let before = try store.ask(customer.receipt).latestRows
        try act(.extend, on: customer)
        let after = try store.ask(customer.receipt).latestRows
        #expect(after.count == 1)
        #expect(text(after[0]["web_order_line_item_id"]) == text(before[0]["web_order_line_item_id"]))
        #expect(text(after[0]["expires_date_ms"]) == "1736499675000")
    }

    @Test("Unknown customers and impossible actions are refused")
    func unknownCustomersAndNonsense() throws {
        for stranger in ["c000099", "unknown-customer"] {
            let isKnown = try store.act(CustomerAction.Kind.refund.action, on: stranger)
            #expect(!isKnown)
        }
        let customer = store.createCustomer(CustomerScript())
        for kind in [CustomerAction.Kind.recover, .resubscribe, .reverseRefund, .revokeFamily, .enableRenewal] {
            #expect(throws: ActionRefused.self) { try act(kind, on: customer) }
        }
        let log = try #require(store.truth(of: customer.customer)?.subscriptions.first?.log)
        #expect(log.count == 1)
    }
}
