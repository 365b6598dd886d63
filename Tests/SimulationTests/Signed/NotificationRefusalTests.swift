import AppStoreSimulator
import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

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
            #expect(try await app.events() == [])
            #expect(try await app.effects() == [])
        }
    }

    @Test(
        "A renewal counts only if it says which app and which environment it is about",
        arguments: ["bundleId", "environment"])
    func nameless(claim: String) async throws {
        try await SignedApp.with { app in
            let renewal = app.renewal(ends: 35, signedOn: 28).filter { $0.key != "environment" }
            var data: [String: Any] = [
                "bundleId": SignedApp.bundleID, "environment": "Production", "signedRenewalInfo": try app.sign(renewal),
            ]
            data[claim] = nil
            let answer = try await app.post(
                try app.sign([
                    "notificationType": "DID_RENEW", "notificationUUID": "3", "signedDate": app.at(28), "data": data,
                ]))
            let reasons = [
                "bundleId": "It does not say which app it is about.",
                "environment": "It names no environment of Apple's, or several.",
            ]
            #expect(answer == reasons[claim])
        }
    }

    @Test("A notification with another number of the app is no fact, where the number is set")
    func otherNumber() async throws {
        try await SignedApp.with { app in
            try await app.served.run("UPDATE ledger.app SET apple_app_id = 2")
            let token = try await app.served.ledger.apps.openNotifications(of: ServedLedger.app)
            let numbered = try #require(try await app.served.ledger.apps.notifiedApp(at: token))
            let text = try app.notification("TEST", status: nil, transaction: nil, signedOn: 29)
            let received = try await app.tracker.receive(Array(text.utf8), for: numbered, admittingChain: { true })
            guard case .unverified(let reason) = received else { throw Unexpected() }
            #expect(reason.hasPrefix("Its app has another number of Apple's than 2"))
            #expect(try await app.post(text) == "no_facts", "the number is not compared where it is not set")
        }
    }

    private struct Unexpected: Error {}

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
