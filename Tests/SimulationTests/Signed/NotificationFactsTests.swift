import AppStoreSimulator
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

    @Test("A life is told by its notifications alone")
    func life() async throws {
        try await SignedApp.with { app in
            for text in try life(of: app) { try await app.hear([text]) }
            #expect(try await app.events() == Self.events)
            #expect(try await app.standing() == ["expired voluntary f weekly"])
            #expect(try await app.effects() == Array(repeating: "applied", count: 4))
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

    @Test("A one-time purchase and its refund are told by notifications")
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

    @Test("A token gives the subscription to the customer whom it names")
    func token() async throws {
        try await SignedApp.with { app in
            let token = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
            let id = try await app.served.ledger.apps.app(ServedLedger.app).id
            _ = try await app.served.ledger.intake.store([
                Upload(appID: id, customer: token, receipt: Array("receipt".utf8), imported: false)
            ])
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

@Suite("What cannot be verified is no fact")
struct NotificationRefusalTests {
    @Test("Each refusal says why, and stores no fact")
    func refusals() async throws {
        try await SignedApp.with { app in
            let transaction = app.transaction("1", from: 28, signedOn: 28.01)
            let good = try app.notification("SUBSCRIBED", transaction: transaction, signedOn: 28.01)
            let parts = good.split(separator: ".").map(String.init)
            let other = try #require(try app.sign(transaction).split(separator: ".").last)
            let foreign = try SigningAuthority()
            let payload = Array(#"{"notificationType":"TEST","notificationUUID":"1","signedDate":\#(app.at(29))}"#.utf8)
            var cases: [(String, String)] = [
                (try foreign.sign(payload), "Its chain does not end in the root that is trusted."),
                ("\(parts[0]).\(parts[1]).\(other)", "The signature does not fit the text."),
                (
                    try app.notification("SUBSCRIBED", transaction: transaction, signedOn: 31),
                    "It was signed in the future; check the clock of the database's machine."
                ),
                (
                    try app.notification("SUBSCRIBED", transaction: transaction, signedOn: 14.9),
                    "It was signed more than 15 days ago."
                ),
                (
                    try app.notification("SUBSCRIBED", transaction: transaction, signedOn: 28, bundle: "com.example.x"),
                    "It is about another app, com.example.x."
                ),
                (
                    try app.notification(
                        "SUBSCRIBED",
                        transaction: transaction.merging(["environment": "Xcode"]) { $1 }, signedOn: 28),
                    "It names no environment of Apple's, or several."
                ),
            ]
            // The outer text is genuine, the inner one is another signer's.
            let inner = try foreign.sign(Array(try JSONSerialization.data(withJSONObject: transaction)))
            let outer: [String: Any] = [
                "notificationType": "REFUND", "notificationUUID": "2", "signedDate": app.at(28),
                "data": [
                    "bundleId": SignedApp.bundleID, "environment": "Production", "signedTransactionInfo": inner,
                ],
            ]
            cases.append((try app.sign(outer), "Its chain does not end in the root that is trusted."))
            for (text, reason) in cases {
                let answer = try await app.post(text)
                #expect(answer == reason)
            }
            try await app.tracker.applyNotifications()
            #expect(try await app.events() == [])
            #expect(try await app.effects() == [])
        }
    }

    @Test("An unknown type that verifies is kept")
    func unknownType() async throws {
        try await SignedApp.with { app in
            let text = try app.notification("SOMETHING_NEW", "AGAIN", status: nil, transaction: nil, signedOn: 29)
            #expect(try await app.post(text) == "no_facts")
            #expect(try await app.post(text) == "repeated")
        }
    }

    @Test("Only so many unknown chains are verified; the rest may come again")
    func tooManyChains() async throws {
        try await SignedApp.with { app in
            let text = try app.notification("TEST", status: nil, transaction: nil, signedOn: 29)
            await #expect(throws: (any Error).self) {
                _ = try await app.tracker.receive(Array(text.utf8), for: app.app, admittingChain: { false })
            }
            #expect(try await app.post(text) == "no_facts")
            // The chain is known now, so that it needs no admission.
            let next = try app.notification("TEST", status: nil, transaction: nil, signedOn: 29)
            _ = try await app.tracker.receive(Array(next.utf8), for: app.app, admittingChain: { false })
        }
    }
}
