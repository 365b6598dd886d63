import AppStoreSimulator
import Crypto
import Foundation
import Ledger
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A verified notification is a fact, whenever and however often it comes")
struct NotificationFactsTests {
    /// A purchase, a renewal, a renewal turned off, and the end.
    private func life(of app: SignedApp) throws -> [String] {
        [
            try app.notification(
                "SUBSCRIBED", "INITIAL_BUY", transaction: app.transaction("1", from: 18, signedOn: 18.01),
                renewal: app.renewal(ends: 25, signedOn: 18.01), signedOn: 18.01),
            try app.notification(
                "DID_RENEW", transaction: app.transaction("2", from: 25, days: 4, signedOn: 25.01),
                renewal: app.renewal(ends: 29, signedOn: 25.01), signedOn: 25.01),
            try app.notification(
                "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED",
                transaction: app.transaction("2", from: 25, days: 4, signedOn: 26),
                renewal: app.renewal(ends: 29, signedOn: 26, renews: false), signedOn: 26),
            try app.notification(
                "EXPIRED", "VOLUNTARY", status: 2,
                transaction: app.transaction("2", from: 25, days: 4, signedOn: 29.01),
                renewal: app.renewal(ends: 29, signedOn: 29.01, renews: false, ["expirationIntent": 1]),
                signedOn: 29.01),
        ]
    }

    private static let events = [
        "subscription.started", "subscription.renewed", "auto_renew.disabled", "subscription.expired",
    ]

    @Test("Notifications alone tell a whole life")
    func life() async throws {
        try await SignedApp.with { app in
            for text in try life(of: app) { try await app.hear([text]) }
            #expect(try await app.events() == Self.events)
            #expect(try await app.standing() == ["expired voluntary f weekly"])
            #expect(try await app.effects() == Array(repeating: "applied", count: 4))
            try await app.expectSound()
        }
    }

    @Test("A status of grace without a date keeps access, is an event, and ends with another status")
    func graceWithoutADate() async throws {
        try await SignedApp.with { app in
            let trial: [String: Any] = ["offerType": 1, "offerDiscountType": "FREE_TRIAL", "price": 0]
            func failed(_ subtype: String?, status: Int, on day: Double) throws -> String {
                try app.notification(
                    "DID_FAIL_TO_RENEW", subtype, status: status,
                    transaction: app.transaction("1", from: 22, signedOn: day, trial),
                    renewal: app.renewal(
                        ends: 29, signedOn: day, ["isInBillingRetryPeriod": true, "expirationIntent": 2]),
                    signedOn: day)
            }
            try await app.hear([
                try app.notification(
                    "SUBSCRIBED", "INITIAL_BUY", transaction: app.transaction("1", from: 22, signedOn: 22.01, trial),
                    renewal: app.renewal(ends: 29, signedOn: 22.01), signedOn: 22.01)
            ])
            try await app.hear([try failed("GRACE_PERIOD", status: 4, on: 29.01)])
            #expect(try await app.standing() == ["grace_period t weekly"])
            #expect(try await app.events() == ["trial.started", "billing.grace_entered"])
            try await app.expectSound()
            try await app.hear([try failed(nil, status: 3, on: 29.5)])
            #expect(try await app.standing() == ["billing_retry f weekly"])
            #expect(try await app.events().last == "billing.grace_expired")
            try await app.expectSound()
        }
    }

    @Test("The same notification again is no event", arguments: [1, 2])
    func repeated(batches: Int) async throws {
        try await SignedApp.with { app in
            let texts = try life(of: app)
            for _ in 1...batches { try await app.hear(texts + texts) }
            #expect(try await app.events() == Self.events)
            #expect(try await app.effects().count == 4)
            try await app.expectSound()
        }
    }

    @Test("A notification that does not join what is known waits, and gives no event")
    func gap() async throws {
        try await SignedApp.with { app in
            let texts = try life(of: app)
            try await app.hear([texts[0]])
            try await app.hear([
                try app.notification(
                    "DID_RENEW", transaction: app.transaction("9", from: 28.5, days: 1, signedOn: 28.6),
                    renewal: app.renewal(ends: 29.5, signedOn: 28.6), signedOn: 28.6)
            ])
            #expect(try await app.events() == ["subscription.started"])
            #expect(try await app.effects() == ["applied", "awaits_whole"])
            try await app.expectSound()
        }
    }

    @Test(
        "A notification about an unknown subscription with a past waits for an answer about it, and then makes it known"
    )
    func unknown() async throws {
        try await SignedApp.with { app in
            let renewed = try app.notification(
                "DID_RENEW", transaction: app.transaction("7", from: 28, signedOn: 28.01),
                renewal: app.renewal(ends: 35, signedOn: 28.01), signedOn: 28.01)
            try await app.hear([renewed])
            #expect(try await app.events() == [])
            #expect(try await app.effects() == ["awaits_whole"])
            try await app.served.run("UPDATE ledger.notification SET attempts = 6, apply_at = now()")
            try await app.hear([])
            #expect(try await app.events() == ["subscription.started"])
            #expect(try await app.standing() == ["active t weekly"])
            try await app.expectSound()
        }
    }

    @Test("A refund ends access, and its reversal gives it back")
    func refund() async throws {
        try await SignedApp.with { app in
            try await app.hear([
                try app.notification(
                    "SUBSCRIBED", "INITIAL_BUY", transaction: app.transaction("1", from: 28, signedOn: 28.01),
                    renewal: app.renewal(ends: 35, signedOn: 28.01), signedOn: 28.01)
            ])
            #expect(try await app.standing() == ["active t weekly"])
            let revoked: [String: Any] = [
                "revocationDate": app.at(28.5), "revocationReason": 0, "revocationPercentage": 40_000,
            ]
            try await app.hear([
                try app.notification(
                    "REFUND", status: 5, transaction: app.transaction("1", from: 28, signedOn: 28.51, revoked),
                    signedOn: 28.51)
            ])
            let refunded = try await app.standing()
            #expect(refunded == ["revoked refund f weekly"])
            let share = try await app.rows("SELECT revocation_percentage::text AS line FROM ledger.period")
            #expect(share == ["40000"])
            let clock = try await app.rows(
                "SELECT (extract(epoch FROM as_of) * 1000)::bigint::text AS line FROM ledger.subscription")
            #expect(clock == ["\(app.at(28.5) - 1)"])
            try await app.hear([
                try app.notification(
                    "REFUND_REVERSED", transaction: app.transaction("1", from: 28, signedOn: 29),
                    renewal: app.renewal(ends: 35, signedOn: 29), signedOn: 29)
            ])
            #expect(try await app.standing() == ["active t weekly"])
            #expect(try await app.events() == ["subscription.started", "refund.granted", "refund.reversed"])
            try await app.expectSound()
        }
    }

    @Test("A refund of an earlier period gives the subscription none of its later words")
    func earlierRefund() async throws {
        try await SignedApp.with { app in
            let first = app.transaction("1", from: 20, signedOn: 20.01)
            try await app.hear([
                try app.notification(
                    "SUBSCRIBED", transaction: first, renewal: app.renewal(ends: 27, signedOn: 20.01), signedOn: 20.01),
                try app.notification(
                    "DID_RENEW", transaction: app.transaction("2", from: 27, signedOn: 27.01),
                    renewal: app.renewal(ends: 34, signedOn: 27.01), signedOn: 27.01),
                try app.notification(
                    "REFUND",
                    transaction: app.transaction("1", from: 20, signedOn: 28, ["revocationDate": app.at(27.9)]),
                    renewal: app.renewal(ends: 34, signedOn: 28, renews: false), signedOn: 28),
            ])
            #expect(try await app.standing() == ["active t weekly"])
            let events = try await app.events()
            #expect(
                events.sorted() == [
                    "auto_renew.disabled", "refund.granted", "subscription.renewed", "subscription.started",
                ])
            try await app.expectSound()
        }
    }

    @Test("Notifications tell of a one-time purchase and its refund")
    func purchase() async throws {
        try await SignedApp.with { app in
            var coins = app.transaction("c1", from: 28, signedOn: 28.01)
            for name in ["expiresDate", "webOrderLineItemId", "subscriptionGroupIdentifier"] { coins[name] = nil }
            coins.merge(["originalTransactionId": "c1", "productId": "coins", "type": "Consumable"]) { $1 }
            let bought = try app.notification("ONE_TIME_CHARGE", status: nil, transaction: coins, signedOn: 28.01)
            coins.merge(["revocationDate": app.at(28.4), "signedDate": app.at(28.5)]) { $1 }
            let refund = try app.notification("REFUND", status: nil, transaction: coins, signedOn: 28.5)
            try await app.hear([refund, bought])
            #expect(try await app.events() == ["purchase.made", "purchase.refunded"])
            try await app.expectSound()
        }
    }

    @Test("A refund of a part of the price takes back that part of the units, and its reversal gives the part again")
    func partialRefund() async throws {
        try await SignedApp.with { app in
            let token = try await app.customer()
            var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
            coins.deliversSince = Instant(milliseconds: app.at(0))
            try await app.served.ledger.apps.applyCatalog([coins], to: ServedLedger.app)
            var bought = app.transaction("c1", from: 28, signedOn: 28.01, ["appAccountToken": token, "quantity": 3])
            for name in ["expiresDate", "webOrderLineItemId", "subscriptionGroupIdentifier"] { bought[name] = nil }
            bought.merge(["originalTransactionId": "c1", "productId": "coins", "type": "Consumable"]) { $1 }
            func hear(_ kind: String, on day: Double, _ more: [String: Any] = [:]) async throws {
                let transaction = bought.merging(more) { $1 }.merging(["signedDate": app.at(day)]) { $1 }
                try await app.hear([
                    try app.notification(kind, status: nil, transaction: transaction, signedOn: day)
                ])
                let due = try await app.rows(
                    "SELECT delivery_id::text AS line FROM ledger.due_delivery ORDER BY delivery_id")
                _ = try await app.served.ledger.deliveries.acknowledge(
                    due.compactMap { Int64($0) }, of: ServedLedger.app)
            }
            try await hear("ONE_TIME_CHARGE", on: 28.01)
            try await hear("REFUND", on: 28.5, ["revocationDate": app.at(28.4), "revocationPercentage": 33_400])
            try await hear("REFUND_REVERSED", on: 28.8)
            let turns = try await app.rows(
                "SELECT concat_ws(' ', turn, reason, units) AS line FROM ledger.delivery ORDER BY turn")
            #expect(turns == ["1 purchase 300", "2 refund 100", "3 refund_reversed 100"])
            try await app.expectSound()
        }
    }

    @Test("An unknown subscription is asked about as a whole where the Server API can be asked")
    func pointer() async throws {
        try await SignedApp.with { app in
            let key = P256.Signing.PrivateKey().pemRepresentation
            try await app.served.ledger.apps.storeServerKey(
                try ConnectKey(pem: key, id: "K1", issuer: "57246542-96fe-1a63-e053-0824d011072a"), of: ServedLedger.app
            )
            let text = try app.notification(
                "SUBSCRIBED", transaction: app.transaction("1", from: 28, signedOn: 28.01),
                renewal: app.renewal(ends: 35, signedOn: 28.01), signedOn: 28.01)
            try await app.hear([text, text])
            #expect(try await app.events() == [])
            #expect(try await app.effects() == ["awaits_whole"])
            let asked = try await app.rows(
                "SELECT concat_ws(' ', form, transaction_id, lane) AS line FROM ledger.receipt JOIN ledger.poll_schedule USING (receipt_id)"
            )
            #expect(asked == ["transaction_id 1 new"])
        }
    }

    @Test("A token gives the subscription to the customer whom it names")
    func token() async throws {
        try await SignedApp.with { app in
            let token = try await app.customer()
            try await app.hear([
                try app.notification(
                    "SUBSCRIBED",
                    transaction: app.transaction(
                        "1", from: 28, signedOn: 28.01, ["appAccountToken": token.uppercased()]),
                    renewal: app.renewal(ends: 35, signedOn: 28.01), signedOn: 28.01)
            ])
            #expect(try await app.rows("SELECT customer AS line FROM perennial.subscription_now") == [token])
            try await app.expectSound()
        }
    }
}
