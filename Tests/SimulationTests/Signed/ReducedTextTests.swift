import AppStore
import AppStoreSimulator
import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Old signed texts are reduced to their claims, without what must go")
struct ReducedTextTests {
    /// A purchase with a token, its refund, and a test.
    private func arrange(_ app: SignedApp) async throws -> (token: String, texts: [String]) {
        let token = try await app.customer()
        func transaction(_ day: Double, _ more: [String: Any] = [:]) -> [String: Any] {
            let others: [String: Any] = [
                "appAccountToken": token, "storefront": "FRA", "deviceVerification": "device-of-ann",
                "commitmentInfo": [
                    "billingPeriodNumber": 3, "later": [["deviceVerificationNonce": "once", "kept": [1]]],
                ],
            ]
            return app.transaction("1", from: 28, signedOn: day, others.merging(more) { $1 })
        }
        let texts = [
            try app.notification(
                "SUBSCRIBED", "INITIAL_BUY", transaction: transaction(28.01),
                renewal: app.renewal(ends: 35, signedOn: 28.01, ["appTransactionId": "705000000000000001"]),
                signedOn: 28.01),
            try app.notification(
                "REFUND", status: 5, transaction: transaction(28.51, ["revocationDate": app.at(28.5)]), signedOn: 28.51),
            try app.notification("TEST", status: nil, transaction: nil, signedOn: 28.6),
        ]
        let refunded = transaction(28.51, ["revocationDate": app.at(28.5)])
        try await app.hear(texts, answering: 28.6, [refunded], about: try await app.receipt(of: token))
        return (token, texts)
    }

    private func reduce(_ app: SignedApp) async throws -> ReducedBatch {
        let cutoff = Instant(milliseconds: app.app.now.milliseconds - 90 * SignedApp.day)
        return try await app.served.ledger.operations.reduceNotifications(after: 0, before: cutoff, by: .present)
    }

    /// Everything that the tables hold, as text.
    private func dump(_ app: SignedApp) async throws -> String {
        var dump = ""
        for table in try await app.rows("SELECT tablename::text AS line FROM pg_tables WHERE schemaname = 'ledger'") {
            dump += try await app.rows("SELECT t::text AS line FROM ledger.\"\(table)\" t").joined(separator: "\n")
        }
        return dump
    }

    private static func hex(_ text: some StringProtocol) -> String {
        text.utf8.map { String(format: "%02x", $0) }.joined()
    }

    @Test("After ninety days signatures and what must go are gone, all other claims stay, and a rebuild finds the same")
    func notifications() async throws {
        try await SignedApp.with { app in
            let texts = try await arrange(app).texts
            #expect(try await reduce(app).reduced == 0, "they are young")
            try await app.served.run("UPDATE ledger.notification SET received_at = received_at - interval '91 days'")
            let signature = Self.hex(texts[0].split(separator: ".")[2])
            let gone = [signature, "device-of-ann", Self.hex("device-of-ann"), "deviceVerification", "x5c\""]
            let whole = try await dump(app)
            #expect(whole.contains(signature), "else it proves nothing")
            let before = try await app.standing()
            let batch = try await reduce(app)
            #expect(
                batch.reduced == 3 && batch.untouched == 0 && batch.bytes.after * 3 < batch.bytes.before * 2, "\(batch)"
            )
            let left = try await dump(app)
            for trace in gone { #expect(!left.contains(trace), "\(trace)") }
            let kept = try await app.rows(
                """
                SELECT concat_ws(' ', kind, texts IS NULL, claims -> 'transaction' ->> 'transactionId',
                                 claims -> 'renewal' ->> 'renewalDate') AS line
                FROM ledger.notification ORDER BY notification_id
                """)
            #expect(kept == ["SUBSCRIBED t 1 \(app.at(35))", "REFUND t 1", "TEST t"])
            let unread = try await app.rows(
                """
                SELECT concat_ws(' ', claims -> 'notification' ->> 'notificationType',
                                 claims -> 'transaction' ->> 'storefront', claims -> 'transaction' -> 'commitmentInfo',
                                 claims -> 'renewal' ->> 'appTransactionId') AS line
                FROM ledger.notification ORDER BY notification_id
                """)
            let commitment = #"{"billingPeriodNumber":3,"later":[{"kept":[1]}]}"#
            #expect(
                unread == ["SUBSCRIBED FRA \(commitment) 705000000000000001", "REFUND FRA \(commitment)", "TEST"])
            #expect(try await reduce(app).reduced == 0, "once")
            #expect(try await app.standing() == before)
            try await app.expectSound()
            for text in texts { #expect(try await app.post(text) == "repeated") }
            #expect(try await app.effects() == ["applied", "applied", "no_facts"])
        }
    }

    @Test("After an erasure no table holds a text, a claim or the token, neither of whole nor of reduced texts")
    func erased() async throws {
        try await SignedApp.with { app in
            let (token, texts) = try await arrange(app)
            try await app.served.run(
                "UPDATE ledger.notification SET received_at = received_at - interval '91 days' WHERE kind = 'REFUND'")
            #expect(try await reduce(app).reduced == 1)
            let traces = [
                token, Self.hex(token), Self.hex(texts[0].split(separator: ".")[2]), "\(app.at(28.01))",
                Self.hex("\"signedDate\":\(app.at(28.01))"), "revocationDate", Self.hex("signedTransactionInfo"),
            ]
            let before = try await dump(app)
            #expect(
                [traces[0], traces[2], "revocationDate", traces[6]].allSatisfy(before.contains),
                "else it proves nothing")
            _ = try await app.served.ledger.customers.erase(
                token, of: ServedLedger.app, deciding: ManualDecision(by: "kim", because: "asked to be forgotten"))
            let after = try await dump(app)
            for trace in traces { #expect(!after.contains(trace), "\(trace) is left") }
            // A repetition brings nothing back.
            for text in texts { #expect(try await app.post(text) == "repeated") }
            #expect(try await dump(app).contains(token) == false)
        }
    }

    @Test("An erasure reaches a notification that waits, about a subscription that nothing is known of yet")
    func erasedWaiting() async throws {
        try await SignedApp.with { app in
            let token = try await app.customer()
            let text = try app.notification(
                "DID_RENEW", transaction: app.transaction("7", from: 28, signedOn: 28.01, ["appAccountToken": token]),
                renewal: app.renewal(ends: 35, signedOn: 28.01), signedOn: 28.01)
            #expect(try await app.post(text) == "unpolled")
            let traces = [token, Self.hex(text.split(separator: ".")[2])]
            let before = try await dump(app)
            #expect(traces.allSatisfy(before.contains), "else it proves nothing")
            _ = try await app.served.ledger.customers.erase(
                token, of: ServedLedger.app, deciding: ManualDecision(by: "kim", because: "asked to be forgotten"))
            let after = try await dump(app)
            for trace in traces { #expect(!after.contains(trace), "\(trace) is left") }
            // A repetition brings nothing back.
            #expect(try await app.post(text) == "repeated")
            #expect(try await dump(app).contains(token) == false)
            try await app.expectSound()
        }
    }

    @Test("`perennial prune` reduces answers of the Server API too, sizes fall, and `rebuild --verify` finds nothing")
    func answers() async throws {
        var options = SimulatorOptions(seed: 20_261_133)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (12, 2, 6)
        try await PretendWorld.with(options, importing: .signedTransactions) { world in
            try await world.hearing(dropped: 0, doubled: 0, reordered: 0) { try await world.work(seconds: 8) }
            world.clock.stop()
            try await world.run("UPDATE ledger.receipt SET history_revision = NULL")
            try await world.checkEverything()
            try await world.run(
                """
                SELECT ledger.add_observation_month(now() - interval '5 months');
                UPDATE ledger.observation SET recorded_at = recorded_at - interval '5 months';
                UPDATE ledger.notification SET received_at = received_at - interval '5 months';
                """)
            func prune(_ arguments: [String] = []) async throws -> String {
                let process = try PerennialProcess(["prune", "--keep-months", "1200"] + arguments, in: world)
                #expect(await process.end() == 0, "\(process.said)")
                defer { try? process.forget() }
                return process.said
            }
            #expect(try await prune(["--keep-signed-days", "200"]).contains("reduced 0, from 0 to 0 bytes"))
            let said = try await prune()
            let sum = try #require(
                said.firstMatch(of: /reduced ([0-9]+), from ([0-9]+) to ([0-9]+) bytes; left as they are 0/))
            let (before, after) = (try #require(Double(sum.2)), try #require(Double(sum.3)))
            print("signed texts reduced: \(sum.0)")
            #expect(try #require(Int(sum.1)) > 50 && after < 0.9 * before, "\(said)")
            #expect(try await prune().contains("reduced 0, from 0 to 0 bytes"), "once")
            let verified = try PerennialProcess(["rebuild", "--verify"], in: world)
            #expect(await verified.end() == 0, "\(verified.said)")
            #expect(!verified.said.contains("cannot be rebuilt"), "\(verified.said)")
            try verified.forget()
            try await world.expectNoViolations()
        }
    }
}
