import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("An app without receipts can be removed, and registered again")
struct RemoveAppTests {
    private func decision() throws -> ManualDecision { try ManualDecision(by: "kim", because: "no longer sold") }

    @Test("A removed app is unknown, its key ends, and it can be registered again")
    func again() async throws {
        try await withLedger { test in
            let ledger = test.ledger
            try await ledger.apps.add("com.example.typo")
            let key = try await ledger.apps.createKey(scope: .read, for: "com.example.typo").secret
            #expect(try await ledger.apps.key(withSecret: key) != nil)
            try await ledger.apps.remove("com.example.typo", deciding: try decision())
            #expect(try await ledger.apps.key(withSecret: key) == nil)
            await #expect(throws: LedgerError.self) { try await ledger.apps.app("com.example.typo") }
            #expect(try await ledger.apps.all().map(\.bundleID) == [test.app.bundleID])
            await #expect(throws: LedgerError.self) {
                try await ledger.apps.remove("com.example.typo", deciding: try decision())
            }
            try await ledger.apps.add("com.example.typo", callsPerSecond: 7)
            #expect(try await ledger.apps.app("com.example.typo").callsPerSecond == 7)
            #expect(try await ledger.apps.key(withSecret: key) == nil)
            await #expect(throws: LedgerError.self) { try await ledger.apps.add("com.example.typo") }
        }
    }

    @Test(
        "What is the app's alone goes with it, what is for all apps stays, and it comes back as one that asks verifyReceipt"
    )
    func taken() async throws {
        try await withLedger { test in
            let (ledger, app) = (test.ledger, BundleID("com.example.typo"))
            try await ledger.apps.add(app, secret: "secret")
            try await ledger.apps.storeOfferKey(try ConnectKey(pem: OfferKeyTests.pem, id: "K"), of: app)
            try await ledger.apps.storeServerKey(try ConnectKey(pem: OfferKeyTests.pem, id: "K", issuer: "I"), of: app)
            try await test.run("UPDATE ledger.app SET verifier = 'server_api' WHERE bundle_id = '\(app.text)'")
            _ = try await ledger.webhooks.add(url: "https://a.example/", app: app)
            _ = try await ledger.webhooks.add(url: "https://b.example/")
            try await ledger.apps.remove(app, deciding: try decision())
            let left = """
                SELECT (SELECT count(*) FROM ledger.webhook) AS a, (SELECT count(*) FROM ledger.offer_key) AS b,
                       (SELECT count(*) FROM ledger.server_key) AS c
                """
            try await test.expectRows(left, [[1, 0, 0]])
            try await ledger.apps.add(app)
            let back = try await ledger.apps.app(app)
            #expect(back.verifier == .verifyReceipt && back.serverKey == nil && back.sealedSecret == nil)
        }
    }

    @Test("An app with receipts stays, until all its customers are erased; its events stay after that")
    func erased() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            try await test.buys("q", by: "bob")
            try await test.upload("shared", by: "ann")
            try await test.upload("shared", by: "bob")
            let events = try await test.text("SELECT count(*) FROM perennial.event_log")
            await #expect(throws: LedgerError.self) {
                try await test.ledger.apps.remove(test.app.bundleID, deciding: try decision())
            }
            #expect(try await test.ledger.apps.all().count == 1)
            var counts: [Int] = []
            try await test.ledger.apps.eraseCustomers(of: test.app.bundleID, deciding: try decision()) {
                counts.append($0)
            }
            #expect(counts == [1, 2])
            #expect(try await test.text("SELECT count(*) FROM ledger.receipt WHERE erased_at IS NULL") == "0")
            let person = test.ledger.acting(as: .user("kim"))
            try await person.apps.remove(test.app.bundleID, deciding: try decision())
            #expect(try await test.ledger.apps.all().isEmpty)
            #expect(try await test.text("SELECT count(*) FROM perennial.event_log") == events)
            #expect(
                try await test.text("SELECT detail ->> 'reason' FROM perennial.audit_log WHERE action = 'app.removed'")
                    == "no longer sold")
        }
    }
}
