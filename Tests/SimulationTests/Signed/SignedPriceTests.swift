import Foundation
import TestSupport
import Testing

@testable import Tracking

@Suite("The price in a signed transaction is the first choice of every figure")
struct SignedPriceTests {
    private static var noPrice: [String: Any] { ["price": NSNull(), "currency": NSNull()] }

    private func charges(of app: SignedApp, knownAt: String = "'infinity'") async throws -> [String] {
        try await app.rows(
            """
            SELECT concat_ws(' ', product_id, quantity, amount_milliunits, currency, price_basis) AS line
            FROM perennial.charges_as_known(\(knownAt)) ORDER BY purchased_at
            """)
    }

    private func revenue(of app: SignedApp) async throws -> [String] {
        try await app.rows(
            """
            SELECT concat_ws(' ', kind, amount_milliunits, currency, price_basis) AS line
            FROM perennial.revenue_event ORDER BY occurred_at, kind
            """)
    }

    private func summarise(_ app: SignedApp) async throws {
        while try await app.served.ledger.operations.summarise(isFirstRound: true)?.isBehind == true {}
    }

    @Test("A price that comes after the summary was made changes summary, history and restatement")
    func late() async throws {
        try await SignedApp.with { app in
            try await app.hear(
                [
                    try app.notification(
                        "SUBSCRIBED", "INITIAL_BUY",
                        transaction: app.transaction("1", from: 28, signedOn: 28.01, Self.noPrice),
                        renewal: app.renewal(ends: 35, signedOn: 28.01), signedOn: 28.01)
                ], answering: 28.02, [app.transaction("1", from: 28, signedOn: 28.01)])
            try await summarise(app)
            #expect(try await revenue(of: app) == ["charge unknown"])
            let before = try #require(try await app.rows("SELECT clock_timestamp()::text AS line").first)
            try await app.hear(
                [
                    try app.notification(
                        "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED",
                        transaction: app.transaction("1", from: 28, signedOn: 29),
                        renewal: app.renewal(ends: 35, signedOn: 29, renews: false), signedOn: 29)
                ], answering: 29.1, [app.transaction("1", from: 28, signedOn: 28.01)], renews: false)
            let priced = ["charge 4990 EUR apple"]
            #expect(try await revenue(of: app) == priced)
            try await summarise(app)
            #expect(try await app.rows("SELECT stream_id::text AS line FROM perennial.unsummarised") == [])
            #expect(try await revenue(of: app) == priced)
            #expect(try await charges(of: app, knownAt: "'\(before)'") == ["weekly 1 unknown"])
            #expect(try await charges(of: app) == ["weekly 1 4990 EUR apple"])
            let restated = try await app.rows(
                """
                SELECT concat_ws(' ', figure, sum(sign * amount), currency) AS line
                FROM perennial.restated_as_known('\(before)', clock_timestamp(), 'UTC')
                WHERE figure = 'revenue' GROUP BY figure, currency ORDER BY currency
                """)
            #expect(restated == ["revenue 4990 EUR", "revenue"])
            try await app.expectSound()
        }
    }

    @Test("A trial costs 0 and is no charge, and a refund is the share that Apple gives back")
    func shares() async throws {
        try await SignedApp.with { app in
            let refund: [String: Any] = [
                "revocationDate": app.at(27.5), "revocationReason": 0, "revocationPercentage": 40_000,
            ]
            try await app.hear(
                [
                    try app.notification(
                        "SUBSCRIBED", "INITIAL_BUY",
                        transaction: app.transaction(
                            "1", from: 20, signedOn: 20.01,
                            ["price": 0, "offerType": 1, "offerDiscountType": "FREE_TRIAL"]),
                        renewal: app.renewal(ends: 27, signedOn: 20.01), signedOn: 20.01),
                    try app.notification(
                        "DID_RENEW", transaction: app.transaction("2", from: 27, signedOn: 27.01),
                        renewal: app.renewal(ends: 34, signedOn: 27.01), signedOn: 27.01),
                    try app.notification(
                        "REFUND", status: 5, transaction: app.transaction("2", from: 27, signedOn: 27.51, refund),
                        signedOn: 27.51),
                ], answering: 27.6,
                [
                    app.transaction("1", from: 20, signedOn: 27.6, ["offerDiscountType": "FREE_TRIAL"]),
                    app.transaction(
                        "2", from: 27, signedOn: 27.6, ["revocationDate": app.at(27.5), "revocationReason": 0]),
                ])
            #expect(try await charges(of: app) == ["weekly 1 0 EUR apple", "weekly 1 4990 EUR apple"])
            let moved = ["charge 4990 EUR apple", "refund -1996 EUR apple"]
            #expect(try await revenue(of: app) == moved)
            try await summarise(app)
            #expect(try await revenue(of: app) == moved)
            try await app.expectSound()
        }
    }

    @Test("A full refund of a replaced period brings its repayment to the price, and a notified share makes no event")
    func refundOfAReplacedPeriod() async throws {
        try await SignedApp.with { app in
            let plus = app.transaction("2", from: 25, signedOn: 25.01, ["productId": "plus", "price": 9_990])
            let replaced: [String: Any] = ["isUpgraded": true, "revocationDate": app.at(25)]
            try await app.hear(
                [
                    try app.notification(
                        "SUBSCRIBED", "INITIAL_BUY", transaction: app.transaction("1", from: 23, signedOn: 23.01),
                        renewal: app.renewal(ends: 30, signedOn: 23.01), signedOn: 23.01)
                ], answering: 23.02, [app.transaction("1", from: 23, signedOn: 23.01)])
            try await app.hear(
                [
                    try app.notification(
                        "DID_CHANGE_RENEWAL_PREF", "UPGRADE", transaction: plus,
                        renewal: app.renewal(
                            ends: 32, signedOn: 25.01, ["productId": "plus", "autoRenewProductId": "plus"]),
                        signedOn: 25.01)
                ], answering: 25.02, [app.transaction("1", from: 23, signedOn: 25.02, replaced), plus])
            let refunded = app.transaction(
                "1", from: 23, signedOn: 28.01,
                [
                    "isUpgraded": true, "revocationDate": app.at(28), "revocationReason": 0,
                    "revocationType": "REFUND_FULL",
                ])
            try await app.hear(
                [try app.notification("REFUND", transaction: refunded, signedOn: 28.01)], answering: 28.02,
                [refunded, plus])
            // Five of seven days were left on the 25th.
            let moved = [
                "charge 4990 EUR apple", "charge 9990 EUR apple", "proration -3564 EUR apple",
                "refund -1426 EUR apple",
            ]
            #expect(try await revenue(of: app) == moved)
            try await summarise(app)
            #expect(try await revenue(of: app) == moved)
            #expect(try await app.events() == ["subscription.started", "ownership.assigned", "product.changed"])
            #expect(try await app.standing() == ["active t plus"])
            try await app.expectSound()
        }
    }

    @Test("The price of a one-time purchase is that of its whole quantity, and is history once it changes")
    func quantity() async throws {
        try await SignedApp.with { app in
            let coins: [String: Any] = [
                "originalTransactionId": "c1", "productId": "coins", "type": "Consumable", "quantity": 3,
                "price": 2_970,
                "expiresDate": NSNull(), "webOrderLineItemId": NSNull(), "subscriptionGroupIdentifier": NSNull(),
            ]
            let bought = app.transaction("c1", from: 20, signedOn: 20.01, coins.merging(Self.noPrice) { $1 })
            try await app.hear(
                [
                    try app.notification("ONE_TIME_CHARGE", status: nil, transaction: bought, signedOn: 20.01)
                ], answering: 20.02, [bought])
            #expect(try await charges(of: app) == ["coins 3 unknown"])
            let before = try #require(try await app.rows("SELECT clock_timestamp()::text AS line").first)
            let refund: [String: Any] = [
                "revocationDate": app.at(21), "revocationReason": 0, "revocationPercentage": 50_000,
            ]
            let refunded = app.transaction("c1", from: 20, signedOn: 21.01, coins.merging(refund) { $1 })
            try await app.hear(
                [try app.notification("REFUND", status: nil, transaction: refunded, signedOn: 21.01)],
                answering: 21.02, [refunded])
            #expect(try await charges(of: app) == ["coins 3 2970 EUR apple"])
            #expect(try await charges(of: app, knownAt: "'\(before)'") == ["coins 3 unknown"])
            #expect(try await revenue(of: app) == ["charge 2970 EUR apple", "refund -1485 EUR apple"])
            try await app.expectSound()
        }
    }
}
