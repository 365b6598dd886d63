import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("Odd forms say the same as the usual ones") struct QuirkTests {
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    private func answer(_ quirk: ByteQuirk) throws -> [String: Any] {
        var script = CustomerScript()
        script.quirks = [quirk]
        script.pastPeriods = 6
        return try store.ask(store.createCustomer(script).receipt)
    }

    @Test("Numbers and texts may swap their types")
    func swappedTypes() throws {
        let answer = try answer(.swappedTypes)
        #expect(answer["status"] as? String == "0")
        let receipt = try #require(answer["receipt"] as? [String: Any])
        #expect(receipt["adam_id"] as? String == "1500000001")
        let row = try #require(answer.latestRows.first)
        #expect(row["quantity"] as? Int == 1 && row["is_trial_period"] as? Bool == false)
        #expect(row["original_transaction_id"] as? Int == 570_000_000_000_000)
        #expect(row["expires_date_ms"] as? String != nil)
    }

    @Test("Rows may be unordered and doubled")
    func unorderedAndDoubledRows() throws {
        let expiries = try answer(.unorderedRows).latestRows.compactMap { $0["expires_date_ms"] as? String }
        #expect(expiries.count == 7 && expiries != expiries.sorted() && expiries != expiries.sorted(by: >))
        let doubled = try answer(.doubledRow).latestRows.compactMap { $0["transaction_id"] as? String }
        #expect(doubled.count == 8 && Set(doubled).count == 7)
    }

    @Test("Keys may be missing or null")
    func missingKeysAndNull() throws {
        let missing = try answer(.missingKeys)
        #expect(missing["environment"] == nil && missing.status == 0)
        for key in ["is_in_intro_offer_period", "subscription_group_identifier", "in_app_ownership_type"] {
            #expect(missing.latestRows.allSatisfy { $0[key] == nil }, "\(key)")
        }
        #expect((try answer(.nullDownload)["receipt"] as? [String: Any])?["download_id"] is NSNull)
    }
}

/// Receipts of iOS 6, compared with samples beside the repository when they are there.
@Suite("Receipts and answers of iOS 6 have their own form") struct LegacyTests {
    let hand = ManualClock()
    let store: Simulator
    let customer: SimulatedCustomer

    init() {
        store = hand.emptyStore()
        customer = store.createCustomer(ScriptKind.legacy.script)
    }

    private func shape(_ value: Any) -> Set<String> {
        // Those samples leave the Pacific text of expiries out.
        BodyShapeTests.shape(value).filter { !$0.contains("formatted_pst") }
    }

    @Test("A running subscription has the form of iOS 6")
    func aRunningSubscription() throws {
        hand.move(seconds: 70)
        let answer = try store.ask(customer.receipt)
        let latest = try #require(answer["latest_receipt_info"] as? [String: Any])
        #expect(answer.status == 0 && answer["environment"] == nil)
        #expect(latest["expires_date"] as? String == "1736499720000")
        #expect((answer["receipt"] as? [String: Any])?["expires_date"] as? String == "1736499660000")
        #expect((answer["receipt"] as? [String: Any])?["request_date_ms"] == nil)
        let newest = try store.ask(try #require(answer["latest_receipt"] as? String))
        #expect((newest["receipt"] as? [String: Any])?["expires_date"] as? String == "1736499720000")
        guard let sample = try BodyShapeTests.sample("50_legacy_active") else { return }
        #expect(shape(answer) == shape(sample))
    }

    @Test("An ended subscription has the form of iOS 6")
    func anEndedOne() throws {
        #expect(try store.act(CustomerAction.Kind.disableRenewal.action, on: customer.customer))
        hand.move(seconds: 70)
        let answer = try store.ask(customer.receipt)
        #expect(answer.status == 21006)
        #expect(answer["expiration_intent"] as? String == "1")
        #expect(answer["latest_receipt_info"] == nil && answer["latest_receipt"] == nil)
        guard let sample = try BodyShapeTests.sample("51_legacy_expired_21006") else { return }
        #expect(shape(answer) == shape(sample))
    }

    @Test("Receipts of iOS 6 have their form and their statuses")
    func itsFormAndItsStatuses() throws {
        let bytes = try #require(Data(base64Encoded: customer.receipt))
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("\"purchase-info\" = ") && text.contains("\"signature\" = "))
        #expect(!text.contains("Sandbox"))
        let forged = text.replacingOccurrences(of: "\"purchase-info\" = \"e", with: "\"purchase-info\" = \"f")
        #expect(try store.ask(Data(forged.utf8).base64EncodedString()).status == 21003)
        #expect(try store.ask(Data("{}".utf8).base64EncodedString()).status == 21002)
        #expect(try store.ask(customer.receipt, at: .sandbox).status == 21008)
        let tester = store.createCustomer(ScriptKind.legacy.script, environment: .sandbox)
        #expect(try store.ask(tester.receipt).status == 21007)
    }
}
