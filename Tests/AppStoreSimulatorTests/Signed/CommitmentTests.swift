import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("A term of payments is shown as Apple shows it") struct CommitmentTests {
    private let hand = ManualClock()
    private let client: ServerClient

    init() throws { client = try ServerClient(hand.emptyStore(), hand) }

    private var store: Simulator { client.store }

    private func customer(_ kind: ScriptKind) -> SimulatedCustomer { store.createCustomer(kind.script) }

    private func act(_ kind: CustomerAction.Kind, on customer: SimulatedCustomer) throws {
        #expect(try store.act(kind.action, on: customer.customer))
    }

    /// The newest transaction, the renewal and the status.
    private func newest(_ customer: SimulatedCustomer) throws -> (
        transaction: [String: Any], renewal: [String: Any], status: Int?
    ) {
        let answer = try client.call("GET", "v1/subscriptions/\(customer.originalTransactionID)").json
        let last = try #require(
            (answer["data"] as? [[String: Any]])?.first?["lastTransactions"] as? [[String: Any]]
        ).first
        return (
            SignedClaims.of(last?.text("signedTransactionInfo") ?? ""),
            SignedClaims.of(last?.text("signedRenewalInfo") ?? ""), last?["status"] as? Int
        )
    }

    private func history(_ customer: SimulatedCustomer) throws -> [[String: Any]] {
        try client.pages("v2/history/\(customer.originalTransactionID)").flatMap(\.transactions)
    }

    private func notified(_ customer: SimulatedCustomer) throws -> [String] {
        store.collectNotifications()
        return store.notifications.made().map { made in
            [made.occasion.name.type, made.occasion.name.subtype].compactMap { $0 }.joined(separator: "/")
        }
    }

    @Test("Twelve payments make a term, which begins again with number one")
    func twelvePayments() throws {
        let customer = customer(.commits)
        var numbers: [Int64?] = []
        for _ in 0..<13 {
            let (transaction, renewal, status) = try newest(customer)
            let term = try #require(transaction["commitmentInfo"] as? [String: Any])
            numbers.append(term.number("billingPeriodNumber"))
            #expect(transaction.text("billingPlanType") == "MONTHLY" && status == 1)
            #expect(transaction.text("productId") == "com.example.tracker.yearly")
            #expect(term.number("totalBillingPeriods") == 12)
            let (price, whole) = try (#require(transaction.number("price")), #require(term.number("commitmentPrice")))
            #expect(whole == 12 * price)
            let (bought, ends) = try (
                #require(transaction.number("purchaseDate")), #require(transaction.number("expiresDate"))
            )
            #expect(ends - bought == 60_000)
            #expect(renewal.number("autoRenewStatus") == 1)
            #expect((renewal["commitmentInfo"] as? [String: Any])?.number("commitmentAutoRenewStatus") == 1)
            hand.move(seconds: 60)
        }
        #expect(numbers == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1])
        let ends = try history(customer).compactMap {
            ($0["commitmentInfo"] as? [String: Any])?.number("commitmentExpiresDate")
        }
        #expect(Set(ends.prefix(12)) == [ManualClock.start + 12 * 60_000])
        #expect(ends[12] == ManualClock.start + 24 * 60_000)
    }

    @Test("A cancellation shows in the will for the next term alone, and the term is paid to its end")
    func cancelled() throws {
        store.notify(NotificationOptions(url: "http://localhost:1"))
        let customer = customer(.commitmentCancelled)
        hand.move(seconds: 155)
        let (_, renewal, _) = try newest(customer)
        let term = try #require(renewal["commitmentInfo"] as? [String: Any])
        #expect(renewal.number("autoRenewStatus") == 1 && term.number("commitmentAutoRenewStatus") == 0)
        #expect(renewal.text("renewalBillingPlanType") == "MONTHLY")
        let pending = try store.ask(customer.receipt).pending
        #expect(pending.text("auto_renew_status") == "1", "verifyReceipt knows nothing of it")
        hand.move(seconds: 60 * 9)
        let last = try newest(customer)
        #expect((last.transaction["commitmentInfo"] as? [String: Any])?.number("billingPeriodNumber") == 12)
        #expect(last.status == 1 && last.renewal.number("autoRenewStatus") == 0)
        hand.move(seconds: 60)
        let over = try newest(customer)
        #expect(over.status == 2 && over.renewal.number("expirationIntent") == 1)
        #expect(over.renewal["commitmentInfo"] == nil, "the renewal has it only within a term")
        #expect(try history(customer).count == 12)
        let names = try notified(customer)
        #expect(names.count { $0 == "DID_RENEW" } == 11)
        #expect(names.contains("DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED") && names.last == "EXPIRED/VOLUNTARY")
    }

    @Test("A failed payment has no grace; its recovery moves the term")
    func recovered() throws {
        store.notify(NotificationOptions(url: "http://localhost:1"))
        var script = ScriptKind.commitmentRecovers.script
        script.hasGrace = true
        let customer = store.createCustomer(script)
        hand.move(seconds: 61)
        let failed = try newest(customer)
        #expect(failed.status == 3 && failed.renewal["gracePeriodExpiresDate"] == nil)
        #expect(failed.renewal["isInBillingRetryPeriod"] as? Bool == true)
        // A cancellation meanwhile does not end the retry.
        try act(.disableRenewal, on: customer)
        hand.move(seconds: 30)
        let term = try #require(try newest(customer).transaction["commitmentInfo"] as? [String: Any])
        #expect(term.number("billingPeriodNumber") == 2)
        #expect(term.number("commitmentExpiresDate") == ManualClock.start + 12 * 60_000 + 30_000)
        #expect(
            try notified(customer) == [
                "SUBSCRIBED/INITIAL_BUY", "DID_FAIL_TO_RENEW", "DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED",
                "DID_RENEW/BILLING_RECOVERY",
            ])
    }

    @Test("A payment that stays unpaid ends the term after ninety days")
    func unpaid() throws {
        let customer = customer(.commitmentFails)
        hand.move(seconds: 60 + 179)
        #expect(try newest(customer).status == 3)
        hand.move(seconds: 2)
        let over = try newest(customer)
        #expect(over.status == 2 && over.renewal["isInBillingRetryPeriod"] as? Bool == false)
    }

    @Test("The refund of the current payment ends the term; that of another one only returns its money")
    func refunded() throws {
        let customer = customer(.commits)
        hand.move(seconds: 130)
        var earlier = CustomerAction(.refund)
        earlier.periodsAgo = 1
        #expect(try store.act(earlier, on: customer.customer))
        #expect(try newest(customer).status == 1)
        var current = CustomerAction(.refund)
        current.keepsRenewal = true
        #expect(try store.act(current, on: customer.customer))
        #expect(try newest(customer).status == 5)
        hand.move(seconds: 120)
        let rows = try history(customer)
        #expect(rows.count == 3 && rows.count { $0["revocationDate"] != nil } == 2)
        #expect(throws: ActionRefused.self) { try act(.reverseRefund, on: customer) }
        let truth = try #require(store.truth(of: customer.customer)).subscriptions[0]
        #expect(truth.periods.map { $0.paid == $0.returned } == [false, true, true] && truth.term == nil)
    }

    @Test("Another product and another plan are for the time after the term")
    func changes() throws {
        let (down, other) = (customer(.commits), customer(.commits))
        hand.move(seconds: 70)
        try act(.downgrade, on: down)
        try act(.switchPlan, on: other)
        var renewal = try newest(down).renewal
        var term = try #require(renewal["commitmentInfo"] as? [String: Any])
        #expect(renewal.text("autoRenewProductId") == "com.example.tracker.yearly")
        #expect(term.text("commitmentAutoRenewProductId") == "com.example.tracker.monthly")
        renewal = try newest(other).renewal
        term = try #require(renewal["commitmentInfo"] as? [String: Any])
        #expect(renewal.text("renewalBillingPlanType") == "MONTHLY")
        #expect(term.text("commitmentRenewalBillingPlanType") == "BILLED_UPFRONT")
        hand.move(seconds: 60 * 11)
        let (lower, yearly) = try (newest(down).transaction, newest(other).transaction)
        #expect(lower.text("productId") == "com.example.tracker.monthly" && lower["commitmentInfo"] == nil)
        #expect(yearly.text("productId") == "com.example.tracker.yearly" && yearly["commitmentInfo"] == nil)
        let (bought, ends) = try (#require(yearly.number("purchaseDate")), #require(yearly.number("expiresDate")))
        #expect(ends - bought == 12 * 60_000)
    }

    @Test("An upgrade ends the term at once, and returns a part of the current payment")
    func upgraded() throws {
        let customer = customer(.commits)
        hand.move(seconds: 90)
        try act(.upgrade, on: customer)
        let rows = try history(customer)
        let replaced = try #require(rows.first { $0["isUpgraded"] as? Bool == true })
        #expect(
            replaced.text("revocationType") == "REFUND_PRORATED" && replaced.number("revocationPercentage") == 50_000)
        #expect(try newest(customer).renewal["commitmentInfo"] == nil)
    }

    @Test("Half of the customers have texts that name the plan of what is paid at once")
    func namesPlan() throws {
        var options = SimulatorOptions(seed: 5)
        print("seed \(options.seed)")
        (options.customers, options.sandboxCustomers, options.traits.commitments) = (200, 0, 0.2)
        let client = try ServerClient(Simulator(options, clock: hand.clock), hand)
        var names: [String?: Int] = [:]
        for customer in client.store.receipts() {
            let claims = try client.pages("v2/history/\(customer.originalTransactionID)").flatMap(\.transactions)
            for text in claims where text["expiresDate"] != nil {
                #expect((text.text("billingPlanType") == "MONTHLY") == (text["commitmentInfo"] != nil))
                names[text.text("billingPlanType"), default: 0] += 1
            }
        }
        for name in [nil, "MONTHLY", "BILLED_UPFRONT"] { #expect(names[name, default: 0] > 50, "\(names)") }
    }
}
