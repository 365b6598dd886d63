import AppStore
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Text that a column cannot hold is changed before it is stored")
struct StorableTextTests {
    @Test("Only what cannot be stored is changed")
    func texts() {
        let long = String(repeating: "é", count: 301)
        for text in ["", "com.example.monthly", "Kaffee für zwei", String(repeating: "é", count: 300)] {
            #expect(text.storable == text)
        }
        #expect("a\0b\0".storable == "a\u{FFFD}b\u{FFFD}")
        #expect(long.storable == String(long.dropLast()))
    }

    @Test("A NUL or an endless text in any field is settled all the same, and kept as Apple wrote it")
    func settled() async throws {
        let names = [
            "product_id", "transaction_id", "original_transaction_id", "web_order_line_item_id",
            "subscription_group_identifier", "auto_renew_product_id",
        ]
        try await ScriptedLine.with { line in
            for odd in [#"odd\u0000"#, Self.incompressible(5_000)] {
                var body = Sample.verified()
                for name in names { body = body.replacing("\"\(name)\":\"", with: "\"\(name)\":\"\(odd)") }
                let more = [
                    "cancellation_reason", "promotional_offer_id", "offer_code_ref_name", "in_app_ownership_type",
                    "app_account_token",
                ].map { "\"\($0)\":\"\(odd)\"," }.joined()
                body = body.replacing("\"is_trial_period\"", with: more + "\"is_trial_period\"")
                let pending = ["expiration_intent", "price_consent_status", "price_increase_status"]
                    .map { ",\"\($0)\":\"\(odd)\"" }.joined()
                body = body.replacing("\"auto_renew_status\":\"1\"", with: "\"auto_renew_status\":\"1\"" + pending)
                try await line.answer(body)
                let settled = try await line.check()
                #expect(settled.outcome == .verified)
                #expect(settled.subscriptions.first?.verdict.productID.text.hasPrefix(odd.prefix(3)) == true)
            }
            #expect(
                try await line.rows(
                    "SELECT product_id = 'odd' || U&'\\FFFD' || 'monthly' FROM ledger.period ORDER BY period_id")
                    == ["true", "false"])
            #expect(try await line.rows("SELECT count(*) FROM ledger.observation WHERE body IS NOT NULL") == ["2"])
        }
    }

    /// Text that an index cannot make shorter.
    private static func incompressible(_ count: Int) -> String {
        let digits = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_")
        var state: UInt64 = 1
        return String(
            (0..<count).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return digits[Int(state >> 58)]
            })
    }

    @Test("Nor does a NUL in a refusal or an exception stop a settlement")
    func reasons() async throws {
        try await ScriptedLine.with { line in
            try await line.answer(#"{"status":0,"receipt":{"bundle_id":"com.\u0000","in_app":[]}}"#)
            #expect(try await line.check().outcome == .rejected)
            try await line.answer(#"{"status":21002,"exception":"java.lang\u0000"}"#)
            #expect(try await line.check().outcome == .indeterminate)
        }
    }
}
