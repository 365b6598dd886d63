import AppStore
import Crypto
import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("An answer with a date that cannot be read takes back nothing and ends no question") struct UnreadableDatesTests
{
    private func withKey(_ body: @escaping @Sendable (SignedApp) async throws -> Void) async throws {
        try await SignedApp.with { app in
            try await app.served.ledger.apps.storeServerKey(
                try ConnectKey(
                    pem: P256.Signing.PrivateKey().pemRepresentation, id: "K1",
                    issuer: "57246542-96fe-1a63-e053-0824d011072a"), of: ServedLedger.app)
            let address = try await app.served.ledger.apps.openNotifications(of: ServedLedger.app)
            let keyed = try #require(try await app.served.ledger.apps.notifiedApp(at: address))
            try await body(
                SignedApp(
                    served: app.served, tracker: app.tracker, authority: app.authority, app: keyed, store: app.store,
                    receipt: app.receipt, start: app.start))
        }
    }

    /// Has the Server API answer about the receipt: statuses with the first transaction, and a history of all.
    private func answer(
        _ app: SignedApp, on day: Double, _ transactions: [[String: Any]], renewal: [String: Any]? = nil,
        from revision: String? = nil, status: [String: Any]? = nil
    ) async throws {
        var all: [String: Any] = ["asked": "1", "environment": "Production"]
        all["from"] = revision
        let texts = try transactions.map(app.sign)
        var row: [String: Any] = ["originalTransactionId": "s1", "status": 1]
        row["signedTransactionInfo"] = try status.map(app.sign) ?? texts.first
        row["signedRenewalInfo"] = try renewal.map(app.sign)
        all["statuses"] = ["data": renewal == nil ? [] : [["lastTransactions": [row]]]]
        all["history"] = [["revision": "r", "hasMore": false, "signedTransactions": texts] as [String: Any]]
        let body = Array(try JSONSerialization.data(withJSONObject: all, options: .sortedKeys))
        let contents = try #require(ServerContents(reading: body))
        let worker = try await app.tracker.ledger.claims.startWorker(host: "test", process: 1)
        let claim = try await app.tracker.ledger.claims.claim(app.receipt, for: worker, leaseSeconds: 60)
        let evidence = Evidence(
            in: contents, bundleID: ServedLedger.app, asOf: Instant(milliseconds: app.at(day)),
            claimedAt: claim.claimedAt)
        let settlement = Settlement(
            claim: claim, finding: .verified(try #require(evidence)), body: body, latestReceipt: nil,
            server: ServerRead(beginsAtStart: revision == nil, revision: "r", goesOn: false))
        let batch = try await app.tracker.ledger.settlements.settleInFull([settlement])
        #expect(batch.failures.map(\.reason) == [])
    }

    private func coins(_ app: SignedApp, signedOn day: Double, _ more: [String: Any] = [:]) -> [String: Any] {
        var claims = app.transaction(
            "c1", from: 20, signedOn: day,
            [
                "originalTransactionId": "c1", "productId": "coins", "type": "Consumable",
                "originalPurchaseDate": app.at(20),
            ])
        for key in ["expiresDate", "webOrderLineItemId", "subscriptionGroupIdentifier"] { claims[key] = nil }
        return claims.merging(more) { $1 }
    }

    /// What is polled and asked about, and what is revoked.
    private func purchases(_ app: SignedApp) async throws -> [String] {
        try await app.rows(
            """
            SELECT concat_ws(' ', product_id, polled_by IS NOT NULL, next_check_at > now(), revoked_at IS NOT NULL) AS line
            FROM ledger.purchase ORDER BY 1
            """)
    }

    private func subscriptions(_ app: SignedApp) async throws -> [String] {
        try await app.rows(
            """
            SELECT concat_ws(' ', s.state, s.entitled, l.polled_by IS NOT NULL, l.next_check_at > now()) AS line
            FROM ledger.subscription l JOIN perennial.subscription_now s USING (original_transaction_id)
            """)
    }

    @Test(
        "A subscription of which no row can be read stays as it was, and is asked about on",
        arguments: [nil, "r"] as [String?],
        ["soon", nil] as [String?])
    func subscription(from revision: String?, expiry: String?) async throws {
        try await withKey { app in
            func week(_ day: Double, isBad: Bool = false) -> [String: Any] {
                var claims = app.transaction("1", from: 28, signedOn: day)
                if isBad { claims["expiresDate"] = expiry }
                return claims
            }
            func renewal(_ day: Double) -> [String: Any] { app.renewal(ends: 35, signedOn: day) }
            // What cannot be read at first is nothing.
            try await answer(app, on: 28.1, [week(28.1, isBad: true)], renewal: renewal(28.1))
            #expect(try await purchases(app) == [])
            #expect(try await app.events() == [])
            let readFrom = "SELECT COALESCE(history_revision, 'none') AS line FROM ledger.receipt"
            #expect(try await app.rows(readFrom) == ["none"], "the history is read from its start again")
            try await answer(app, on: 28.2, [week(28.2)], renewal: renewal(28.2))
            #expect(try await app.rows(readFrom) == ["r"])
            #expect(try await subscriptions(app) == ["active t t t"])
            let events = try await app.events()
            for day in [28.3, 28.4, 28.5, 28.6] {
                try await answer(app, on: day, [week(day, isBad: true)], renewal: renewal(day), from: revision)
                #expect(try await subscriptions(app) == ["active t t t"])
            }
            #expect(try await purchases(app) == [])
            #expect(try await app.events() == events)
            #expect(
                try await app.rows(
                    "SELECT 'omitted' AS line FROM ledger.receipt_subscription WHERE omitted_at IS NOT NULL") == [])
            try await answer(app, on: 28.7, [week(28.7)], renewal: renewal(28.7), from: revision)
            #expect(try await subscriptions(app) == ["active t t t"])
            #expect(try await app.events() == events)
            try await app.expectSound()
        }
    }

    @Test(
        "A purchase whose refund cannot be read was not used up, and its refund is found",
        arguments: [nil, "r"] as [String?])
    func purchase(from revision: String?) async throws {
        try await withKey { app in
            let week = { (day: Double) in app.transaction("1", from: 28, signedOn: day) }
            try await answer(app, on: 28.2, [week(28.2), coins(app, signedOn: 28.2)])
            #expect(try await purchases(app) == ["coins t t f"])
            let clock = "SELECT as_of::text AS line FROM ledger.purchase"
            let before = try await app.rows(clock)
            for day in [28.3, 28.4] {
                let bad = coins(app, signedOn: day, ["revocationDate": "yesterday", "revocationReason": 0])
                try await answer(app, on: day, [week(day), bad], from: revision)
                #expect(try await purchases(app) == ["coins t t f"])
            }
            #expect(try await app.rows(clock) == before, "what Apple said of it could not be read")
            try await answer(
                app, on: 28.5, [week(28.5), coins(app, signedOn: 28.5, ["revocationDate": app.at(28.3)])],
                from: revision)
            #expect(try await purchases(app) == ["coins t t t"])
            try await app.expectSound()
        }
    }

    @Test("What the statuses name counts where its copy in the history cannot be read, and the other way round")
    func halves() async throws {
        try await withKey { app in
            let renewal = app.renewal(ends: 35, signedOn: 28.2)
            let good = app.transaction("1", from: 28, signedOn: 28.2)
            let bad = app.transaction("1", from: 28, signedOn: 28.2, ["expiresDate": -1])
            try await answer(app, on: 28.2, [bad], renewal: renewal, status: good)
            #expect(try await subscriptions(app) == ["active t t t"])
            try await app.expectSound()
        }
        try await withKey { app in
            let renewal = app.renewal(ends: 35, signedOn: 28.2)
            let good = app.transaction("1", from: 28, signedOn: 28.2)
            let bad = app.transaction("1", from: 28, signedOn: 28.2, ["expiresDate": -1])
            try await answer(app, on: 28.2, [good], renewal: renewal, status: bad)
            #expect(try await subscriptions(app) == ["active t t t"])
            try await app.expectSound()
        }
    }

    @Test("A purchase whose row of verifyReceipt cannot be read was not used up")
    func verifyReceipt() async throws {
        try await SignedApp.with { app in
            let week = { (day: Double) in app.transaction("1", from: 28, signedOn: day) }
            try await app.answer(on: 28.2, [week(28.2), coins(app, signedOn: 28.2)])
            #expect(try await purchases(app) == ["coins t t f"])
            try await app.answer(on: 28.3, [week(28.3), coins(app, signedOn: 28.3, ["revocationDate": "yesterday"])])
            #expect(try await purchases(app) == ["coins t t f"])
            try await app.answer(on: 28.4, [week(28.4), coins(app, signedOn: 28.4, ["revocationDate": app.at(28.3)])])
            #expect(try await purchases(app) == ["coins t t t"])
            try await app.expectSound()
        }
    }

    @Test("A notification with a date that cannot be read is a reason to ask, and no answer shows what it states")
    func notification() async throws {
        try await SignedApp.with { app in
            let week = app.transaction("1", from: 28, signedOn: 28.01)
            try await app.answer(on: 28.1, [week])
            let bad = app.transaction("1", from: 28, signedOn: 28.2, ["revocationDate": "yesterday", "price": 5_990])
            #expect(
                try await app.post(
                    app.notification(
                        "REFUND", transaction: bad, renewal: app.renewal(ends: 35, signedOn: 28.2), signedOn: 28.2))
                    == "asked")
            #expect(
                try await app.served.ledger.intake.unreadClaims().map(\.name) == ["transaction.revocationDate"])
            let before = try await app.events()
            for day in [28.3, 28.4, 28.5] {
                try await app.answer(on: day, [week])
                #expect(try await app.effects() == ["asked"])
            }
            try await app.answer(on: 28.6, [week])
            #expect(try await app.effects() == ["unshown"])
            #expect(try await app.events() == before)
            #expect(try await app.rows("SELECT concat(price_milliunits) AS line FROM ledger.period") == [""])
            try await app.expectSound()
        }
    }

    @Test("What no receipt polls is asked about by a notification with a date that cannot be read")
    func unpolled() async throws {
        try await withKey { app in
            let bad = coins(app, signedOn: 28.2, ["purchaseDate": "then"])
            #expect(
                try await app.post(app.notification("ONE_TIME_CHARGE", transaction: bad, signedOn: 28.2)) == "asked")
            let asked = try await app.rows(
                "SELECT transaction_id AS line FROM ledger.receipt WHERE form = 'transaction_id'")
            #expect(asked == ["c1"])
        }
    }

    @Test("A device's signed transaction with a date that cannot be read is taken: Apple is asked by its id")
    func upload() async throws {
        try await withKey { app in
            for (id, claim) in [("1", "expiresDate"), ("2", "purchaseDate"), ("3", "revocationDate")] {
                let text = try app.sign(app.transaction(id, from: 28, signedOn: 28.1, [claim: "soon"]))
                let stored = try await app.tracker.store([
                    Submission(bundleID: ServedLedger.app, customer: "kim", subject: .signedTransaction(text))
                ])
                #expect(throws: Never.self) { try #require(stored.first).get() }
            }
            let asked = try await app.rows(
                "SELECT transaction_id AS line FROM ledger.receipt WHERE form = 'signed_transaction' ORDER BY 1")
            #expect(asked == ["1", "2", "3"])
        }
    }
}
