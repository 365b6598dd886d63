import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("Answers are as Apple gives them") struct AnswerTests {
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    /// The whole body of a customer who renewed once, byte for byte.
    @Test("An answer equals its golden file")
    func golden() throws {
        let customer = store.createCustomer(CustomerScript())
        hand.move(seconds: 70.586)
        let answer = try store.ask(customer.receipt)
        let row = try #require(answer.latestRows.first)
        #expect(
            row.mapValues { "\($0)" } == [
                "quantity": "1", "product_id": "com.example.tracker.monthly", "transaction_id": "570000000001237",
                "original_transaction_id": "570000000000000", "web_order_line_item_id": "770000000000001",
                "purchase_date": "2025-01-10 09:01:00 Etc/GMT", "purchase_date_ms": "1736499660000",
                "purchase_date_pst": "2025-01-10 01:01:00 America/Los_Angeles",
                "original_purchase_date": "2025-01-10 09:00:02 Etc/GMT",
                "original_purchase_date_ms": "1736499602000",
                "original_purchase_date_pst": "2025-01-10 01:00:02 America/Los_Angeles",
                "expires_date": "2025-01-10 09:02:00 Etc/GMT", "expires_date_ms": "1736499720000",
                "expires_date_pst": "2025-01-10 01:02:00 America/Los_Angeles", "is_trial_period": "false",
                "is_in_intro_offer_period": "false", "subscription_group_identifier": "20000001",
                "in_app_ownership_type": "PURCHASED",
            ])
        let receipt = try #require(answer["receipt"] as? [String: Any])
        #expect(receipt["request_date_ms"] as? String == "1736499670586")
        #expect(receipt["download_id"] as? Int == 503_000_000_000_000_001)
    }

    @Test("in_app is frozen, and latest_receipt moves on")
    func inAppIsFrozenAndLatestReceiptMovesOn() throws {
        let customer = store.createCustomer(CustomerScript())
        hand.move(seconds: 130)
        #expect(try store.act(CustomerAction.Kind.refund.action, on: customer.customer))
        let old = try store.ask(customer.receipt)
        #expect(old.deviceRows.count == 1 && old.latestRows.count == 3)
        let newest = try #require(old["latest_receipt"] as? String)
        let fresh = try store.ask(newest)
        #expect(fresh.deviceRows.count == 3)
        // The refund came after that receipt was written: only the server's row knows it.
        #expect(fresh.deviceRows.allSatisfy { $0["cancellation_date_ms"] == nil })
        #expect(fresh.latestRows.first?["cancellation_date_ms"] as? String == "1736499730000")
        #expect(fresh.deviceRows.allSatisfy { $0["subscription_group_identifier"] == nil })
        #expect(fresh["latest_receipt"] as? String == newest)
    }

    @Test("Rows are newest first in production and oldest first in the sandbox")
    func newestFirstInProductionOldestFirstInTheSandbox() throws {
        for environment in StoreEnvironment.allCases {
            let customer = store.createCustomer(CustomerScript(), environment: environment)
            hand.move(seconds: 200)
            let expiries = try store.ask(customer.receipt, at: environment).latestRows.compactMap {
                $0["expires_date_ms"] as? String
            }
            #expect(expiries.count == 4)
            switch environment {
            case .production: #expect(expiries == expiries.sorted(by: >))
            case .sandbox: #expect(expiries == expiries.sorted())
            }
        }
    }

    @Test("Without old transactions one row is left")
    func withoutOldTransactionsOneRowIsLeft() throws {
        let customer = store.createCustomer(CustomerScript())
        hand.move(seconds: 200)
        let full = try store.ask(customer.receipt)
        let short = try store.ask(customer.receipt, excludingOld: true)
        #expect(full.latestRows.count == 4 && short.latestRows.count == 1)
        #expect(NSDictionary(dictionary: full.latestRows[0]) == NSDictionary(dictionary: short.latestRows[0]))
        #expect(short.deviceRows.count == full.deviceRows.count)
    }

    @Test("A restore reissues transaction ids on the device only")
    func aRestoreReissuesTransactionIDsOnTheDeviceOnly() throws {
        var script = CustomerScript()
        script.hasRestored = true
        script.pastPeriods = 2
        let customer = store.createCustomer(script)
        let answer = try store.ask(customer.receipt)
        func values(_ rows: [[String: Any]], _ key: String) -> Set<String> {
            Set(rows.compactMap { $0[key] as? String })
        }
        #expect(answer.deviceRows.count == 3 && answer.latestRows.count == 3)
        for key in ["web_order_line_item_id", "expires_date_ms", "purchase_date_ms", "original_transaction_id"] {
            #expect(values(answer.deviceRows, key) == values(answer.latestRows, key))
        }
        let ours = values(answer.latestRows, "transaction_id")
        #expect(values(answer.deviceRows, "transaction_id").isDisjoint(with: ours))
    }

    @Test("A lifetime purchase has no expiry")
    func aLifetimePurchaseHasNoExpiry() throws {
        var script = CustomerScript()
        script.ownsLifetime = true
        let customer = store.createCustomer(script)
        let answer = try store.ask(customer.receipt)
        for rows in [answer.deviceRows, answer.latestRows] {
            let lifetime = try #require(rows.first { $0["product_id"] as? String == "com.example.tracker.lifetime" })
            #expect(lifetime["expires_date_ms"] == nil && lifetime["web_order_line_item_id"] == nil)
            #expect(rows.count == 2)
        }
    }
}
