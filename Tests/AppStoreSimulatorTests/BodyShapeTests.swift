import Foundation
import Testing

@testable import AppStoreSimulator

/// The answers have the same keys and JSON types as answers written by hand from Apple's documentation. The samples
/// lie beside the repository and are not part of it; without them the test says so.
@Suite("Answers have the shape of Apple's documentation") struct BodyShapeTests {
    static let pairs: [(String, ScriptKind, Double)] = [
        ("01_active_renewing", .loyal, 70),
        ("02_active_will-not-renew", .cancels, 40),
        ("04_trial_free_active", .trialConverts, 5),
        ("05_intro_paid_active", .payAsYouGo, 5),
        ("07_trial_cancelled_expired", .trialEnds, 20),
        ("08_grace_period_active", .graceRecovers, 65),
        ("09_billing_retry_no-grace", .retryEnds, 65),
        ("10_billing_retry_after-grace-ended", .graceEnds, 120),
        ("11_billing_retry_recovered_new-anchor", .retryRecovers, 110),
        ("12_billing_recovered_in_grace_same-anchor", .graceRecovers, 80),
        ("13_expired_intent1_voluntary", .cancels, 80),
        ("13_expired_intent2_billing-error-after-60d", .retryEnds, 200),
        ("13_expired_intent3_no-consent-to-price-increase", .priceRefused, 130),
        ("13_expired_intent4_product-unavailable", .withdrawn, 130),
        ("13_expired_intent5_unknown", .brokenOff, 130),
        ("14_refunded_current-period", .refunded, 100),
        ("16_refunded_old-period_current-still-active", .olderRefunded, 110),
        ("17_upgrade_immediate_old-cancelled_is_upgraded", .upgrades, 100),
        ("19_downgrade_pending", .downgrades, 40),
        ("20_downgrade_effective", .downgrades, 70),
        ("21_crossgrade_other-duration_pending", .downgrades, 40),
        ("22_offer_code_redeemed", .offerCode, 5),
        ("26_price_consent_pending_0", .priceRefused, 100),
        ("27_price_consent_given_1", .priceAccepted, 100),
        ("24_family_shared_active_no-wolid", .familyRevoked, 40),
        ("28_resubscribed_after-lapse_same-otid", .resubscribes, 125),
    ]

    /// Paths with their types; rows of one array are merged.
    static func shape(_ value: Any, at path: String = "") -> Set<String> {
        switch value {
        case let object as [String: Any]:
            object.reduce(into: []) { $0.formUnion(shape($1.value, at: path + "." + $1.key)) }
        case let array as [Any]: array.reduce(into: [path + "[]"]) { $0.formUnion(shape($1, at: path + "[]")) }
        case is String: [path + ": text"]
        case is NSNumber: [path + ": number"]
        default: [path + ": other"]
        }
    }

    static func sample(_ name: String) throws -> Any? {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let file = root.appendingPathComponent("../shared/fixtures/synthetic/\(name).json")
        guard FileManager.default.fileExists(atPath: file.path) else {
            print("no samples beside the repository: \(name) is not compared")
            return nil
        }
        return try JSONSerialization.jsonObject(with: Data(contentsOf: file))
    }

    @Test("Keys and types are those of the samples", arguments: pairs)
    func sameKeysAndTypes(name: String, kind: ScriptKind, seconds: Double) throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        let customer = store.createCustomer(kind.script)
        hand.move(seconds: seconds)
        let ours = Self.shape(try store.ask(customer.receipt))
        guard let sample = try Self.sample(name) else { return }
        // Apple documents this key for latest_receipt_info only.
        let theirs = Self.shape(sample).subtracting([".receipt.in_app[].offer_code_ref_name: text"])
        #expect(ours.subtracting(theirs) == [], "we say more")
        #expect(theirs.subtracting(ours) == [], "we say less")
    }

    /// That sample's device took a new receipt after the end; ours is frozen at the purchase.
    @Test("A revoked share has the sample rows")
    func aRevokedShareHasTheSampleRows() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        let customer = store.createCustomer(ScriptKind.familyRevoked.script)
        hand.move(seconds: 100)
        let answer = try store.ask(customer.receipt)
        #expect(answer.latestRows.first?["in_app_ownership_type"] as? String == "FAMILY_SHARED")
        #expect(answer.latestRows.first?["cancellation_date_ms"] as? String == "1736499690000")
        guard let sample = try Self.sample("25_family_shared_revoked") as? [String: Any] else { return }
        for key in ["latest_receipt_info", "pending_renewal_info"] {
            #expect(Self.shape(answer[key] ?? "") == Self.shape(sample[key] ?? ""))
        }
    }

    @Test("Sandbox has its constants")
    func sandboxHasItsConstants() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        let customer = store.createCustomer(CustomerScript(), environment: .sandbox)
        hand.move(seconds: 60 * 14)
        let answer = try store.ask(customer.receipt, at: .sandbox)
        if let sample = try Self.sample("37_sandbox_12-renewals_then_expired") {
            #expect(Self.shape(answer) == Self.shape(sample))
        }
        let receipt = try #require(answer["receipt"] as? [String: Any])
        #expect(receipt["receipt_type"] as? String == "ProductionSandbox")
        #expect(receipt["adam_id"] as? Int == 0)
        #expect(receipt["original_purchase_date"] as? String == "2013-08-01 07:00:00 Etc/GMT")
        #expect(receipt["original_application_version"] as? String == "1.0")
        #expect(answer.latestRows.count == 13)
    }
}
