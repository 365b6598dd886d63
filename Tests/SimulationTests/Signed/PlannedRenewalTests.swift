import TestSupport
import Testing

@testable import Tracking

@Suite("A renewal that Apple reports is asked about at once, unless the planned check shows it anyway")
struct PlannedRenewalTests {
    /// A renewal that a notification states, and whether it waits for the planned check.
    private struct Renewed: Sendable, CustomStringConvertible {
        let description: String
        var id = "2"
        var from = 32.0
        var days = 7.0
        var product = "weekly"
        /// What is changed of the known period before: 25 to 32, of weekly, which renews.
        var before = ""
        var waits = false
    }

    /// Changes the span that runs.
    private static func span(_ change: String) -> String {
        "UPDATE ledger.subscription_span SET \(change) WHERE state = 'active'"
    }

    private static let renewals = [
        Renewed(description: "the period that is expected next", waits: true),
        Renewed(description: "a later period", from: 33, waits: true),
        Renewed(description: "the known period", id: "1", from: 25, waits: true),
        Renewed(
            description: "of the planned product", product: "plus",
            before: "UPDATE ledger.subscription SET renews_to_product_id = 'plus'", waits: true),
        Renewed(description: "of another product", product: "plus"),
        Renewed(description: "that begins before the known end", from: 30),
        Renewed(description: "that ends before the known end", from: 28, days: 3, product: "plus"),
        Renewed(description: "the known period with a later end", id: "1", from: 25, days: 8),
        Renewed(
            description: "while renewal is off", before: "UPDATE ledger.subscription SET renewal_expected = false"),
        Renewed(
            description: "the known period, refunded", id: "1", from: 25,
            before: "UPDATE ledger.period SET cancelled_at = now()"),
        Renewed(
            description: "the known period, replaced", id: "1", from: 25,
            before: "UPDATE ledger.period SET is_upgraded = true"),
        Renewed(
            description: "of what ends within the hour",
            before: "UPDATE ledger.subscription SET expires_at = now() + interval '59 minutes'"),
        Renewed(
            description: "of what is revoked",
            before: span("(state, reason, entitled) = ('revoked', 'refund', false)")),
        Renewed(
            description: "of what is retried",
            before: span("(state, entitled) = ('billing_retry', false)")),
        Renewed(description: "in grace", before: span("state = 'grace_period'")),
    ]

    @Test("A renewal waits for the planned check exactly if it is known, or the one that is expected of what is active")
    func planned() async throws {
        try await SignedApp.with { app in
            try await app.answer(on: 29, [app.transaction("1", from: 25, days: 7, signedOn: 29)])
            let kept = ["subscription", "period", "subscription_span", "poll_schedule"]
            for table in kept { try await app.served.run("CREATE TABLE public.\(table) AS TABLE ledger.\(table)") }
            for renewed in Self.renewals {
                let (id, product) = (renewed.id, renewed.product)
                if !renewed.before.isEmpty { try await app.served.run(renewed.before) }
                let text = try app.notification(
                    "DID_RENEW",
                    transaction: app.transaction(
                        id, from: renewed.from, days: renewed.days, signedOn: 29.9, ["productId": product]),
                    renewal: app.renewal(ends: renewed.from + renewed.days, signedOn: 29.9), signedOn: 29.9)
                #expect(try await app.post(text) == (renewed.waits ? "planned" : "asked"), "\(renewed)")
                let schedule =
                    "SELECT concat_ws(' ', follow_ups, fingerprint IS NULL) AS line FROM ledger.poll_schedule"
                #expect(try await app.rows(schedule) == [renewed.waits ? "0 t" : "4 t"], "\(renewed)")
                try await app.served.run(
                    """
                    UPDATE ledger.subscription s SET (renews_to_product_id, renewal_expected, expires_at) =
                        (k.renews_to_product_id, k.renewal_expected, k.expires_at) FROM public.subscription k;
                    UPDATE ledger.period p SET (cancelled_at, is_upgraded) = (k.cancelled_at, k.is_upgraded)
                        FROM public.period k;
                    UPDATE ledger.subscription_span n SET (state, reason, entitled) = (k.state, k.reason, k.entitled)
                        FROM public.subscription_span k WHERE k.valid = n.valid AND k.known = n.known;
                    UPDATE ledger.poll_schedule SET follow_ups = 0
                    """)
            }
            let bare = try app.notification(
                "DID_RENEW", transaction: nil, renewal: app.renewal(ends: 39, signedOn: 29.9), signedOn: 29.9)
            #expect(try await app.post(bare) == "asked")
        }
    }

    @Test("A lost upgrade shows when the new product renews, although the old one is known for months")
    func lostUpgrade() async throws {
        try await SignedApp.with { app in
            func basic(signedOn day: Double, _ more: [String: Any] = [:]) -> [String: Any] {
                app.transaction("1", from: 20, days: 365, signedOn: day, ["productId": "basic"].merging(more) { $1 })
            }
            try await app.answer(on: 27, [basic(signedOn: 27)])
            let plus = app.transaction("3", from: 29.9, days: 30, signedOn: 29.9, ["productId": "plus"])
            let text = try app.notification(
                "DID_RENEW", transaction: plus, renewal: app.renewal(ends: 59.9, signedOn: 29.9, ["productId": "plus"]),
                signedOn: 29.9)
            #expect(try await app.post(text) == "asked")
            let upgraded: [String: Any] = ["isUpgraded": true, "revocationDate": app.at(28)]
            let earlier = app.transaction("2", from: 28, days: 1.9, signedOn: 29.9, ["productId": "plus"])
            try await app.answer(on: 29.95, [basic(signedOn: 29.95, upgraded), earlier, plus])
            #expect(try await app.standing() == ["active t plus"])
            try await app.expectSound()
        }
    }
}
