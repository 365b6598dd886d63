import Crypto
import TestSupport
import Testing

@testable import Subscriptions
@testable import Tracking

@Suite("What the channels say differently is kept until they agree, and an app leaves both only when nothing is open")
struct ChannelTests {
    /// A ledger whose app asks both channels, with one checked receipt.
    private func withBoth(_ body: (TestLedger, ReceiptID) async throws -> Void) async throws {
        try await withLedger { test in
            let pem = P256.Signing.PrivateKey().pemRepresentation
            try await test.ledger.apps.storeServerKey(
                try ConnectKey(pem: pem, id: "K", issuer: "I"), of: test.app.bundleID)
            try await test.ledger.apps.change(test.app.bundleID, .asking(.both))
            let receipt = try await test.upload("r")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(0)))
            try await body(test, receipt)
        }
    }

    private func record(
        _ test: TestLedger, _ receipt: ReceiptID, _ differences: [ChannelDifference]?
    ) async throws {
        let comparison = differences.map { ChannelComparison(compared: ["1000"], differences: $0) }
        try await test.ledger.settlements.record([
            ComparedReceipt(
                receiptID: receipt, appID: test.app.id, environment: .production, comparison: comparison)
        ])
    }

    private func difference(
        _ ours: String?, _ theirs: String?, _ explanation: ChannelDifference.Explanation? = nil
    ) -> ChannelDifference {
        ChannelDifference(
            originalTransactionID: "1000", transactionID: "1", fact: .expiresAt, verifyReceipt: ours,
            serverAPI: theirs, explanation: explanation)
    }

    private func standings(_ test: TestLedger) async throws -> [String] {
        try await test.rows(
            """
            SELECT concat_ws(' ', fact, COALESCE(verify_receipt, '-'), COALESCE(server_api, '-'), standing)
            FROM perennial.channel_difference ORDER BY first_seen_at
            """)
    }

    @Test("A difference waits, brings the next check forward, and ends when it is not seen again")
    func delay() async throws {
        try await withBoth { test, receipt in
            try await record(test, receipt, [difference("a", nil)])
            #expect(try await standings(test) == ["expires_at a - waiting"])
            let soon =
                "SELECT due_at BETWEEN now() + interval '50 s' AND now() + interval '61 s' FROM ledger.poll_schedule"
            try await test.expectRows(soon, [[true]])
            try await record(test, receipt, [difference("a", "b")])
            #expect(try await standings(test) == ["expires_at a b waiting"], "one difference, as it is now")
            try await record(test, receipt, nil)
            #expect(try await standings(test) == ["expires_at a b waiting"], "nothing was compared")
            try await record(test, receipt, [])
            #expect(try await standings(test) == ["expires_at a b agreed"])
            try await record(test, receipt, [difference("b", "c")])
            #expect(try await standings(test) == ["expires_at a b agreed", "expires_at b c waiting"])
        }
    }

    @Test(
        "A difference of more than an hour is unexplained, unless it is to be expected; neither is asked about again soon"
    )
    func unexplained() async throws {
        try await withBoth { test, receipt in
            try await record(test, receipt, [difference("a", "b")])
            try await test.run(
                """
                UPDATE ledger.channel_difference SET waits_until = now();
                UPDATE ledger.poll_schedule SET due_at = now() + interval '3 days'
                """)
            try await record(test, receipt, [difference("a", "b")])
            #expect(try await standings(test) == ["expires_at a b unexplained"])
            let late = "SELECT due_at > now() + interval '2 days' FROM ledger.poll_schedule"
            try await test.expectRows(late, [[true]])
            try await record(test, receipt, [difference(nil, "b", .restored)])
            #expect(try await standings(test) == ["expires_at - b explained"])
            try await test.expectRows(late, [[true]])
        }
    }

    @Test("Leaving both needs seven days, every live subscription compared, and nothing open; or force, with a reason")
    func leaving() async throws {
        try await withBoth { test, receipt in
            let apps = test.ledger.apps
            func refusal(_ verifier: Verifier = .serverAPI) async throws -> String? {
                let before = try await test.appNow().verifier
                do {
                    try await apps.change(test.app.bundleID, .asking(verifier))
                } catch let error as LedgerError {
                    #expect(try await test.appNow().verifier == before)
                    return error.message
                }
                return nil
            }
            #expect(try await refusal()?.contains("0 of 7 days") == true)
            #expect(try await refusal(.verifyReceipt)?.contains("0 of 7 days") == true)
            #expect(try await refusal(.both) == nil, "it stays what it is")
            try await test.run("UPDATE ledger.app SET compares_since = now() - interval '8 days'")
            #expect(try await refusal()?.contains("0 of 1 live subscriptions") == true)
            try await record(test, receipt, [difference("a", "b")])
            #expect(try await refusal()?.contains("1 differences are not explained") == true)
            try await record(test, receipt, [difference("a", "b", .restored)])
            #expect(try await refusal() == nil)
            try await test.expectRows(
                "SELECT verifier, compares_since IS NULL FROM ledger.app", [["server_api", true]])

            try await apps.change(test.app.bundleID, .asking(.both))
            #expect(try await standings(test) == [], "the comparison begins anew")
            var forced = AppChange.asking(.verifyReceipt)
            forced.forcedBecause = "verifyReceipt is enough"
            try await test.ledger.acting(as: .user("ann")).apps.change(test.app.bundleID, forced)
            try await test.expectRows(
                "SELECT detail->>'verifier', detail->>'forced_because' FROM perennial.audit_log",
                [["verify_receipt", "verifyReceipt is enough"]])
        }
    }

    @Test("The walk brings forward what was not compared, once, and begins again the day after")
    func walk() async throws {
        try await withBoth { test, receipt in
            let late = "UPDATE ledger.poll_schedule SET lane = 'sweep', due_at = now() + interval '20 days'"
            let isDue = "SELECT due_at <= now() FROM ledger.poll_schedule"
            func step() async throws { try await test.ledger.claims.hastenComparisons(of: try await test.appNow()) }
            try await test.run(late)
            try await step()
            try await test.expectRows(isDue, [[true]])
            try await test.run(late)
            try await step()
            try await step()
            try await test.expectRows(isDue, [[false]])
            try await test.run("UPDATE ledger.channel_walk SET begun_at = now() - interval '25 hours'")
            try await step()
            try await test.expectRows(isDue, [[true]])
            try await record(test, receipt, [])
            try await test.run(
                "\(late); UPDATE ledger.channel_walk SET begun_at = now() - interval '25 hours', receipt_id = NULL")
            try await step()
            try await test.expectRows(isDue, [[false]])
        }
    }

    @Test("Erasing the customer removes what the channels said differently")
    func erasure() async throws {
        try await withBoth { test, receipt in
            try await record(test, receipt, [difference("a", "b")])
            _ = try await test.ledger.customers.erase(
                "ann", of: test.app.bundleID, deciding: try ManualDecision(by: "test", because: "asked for it"))
            #expect(try await standings(test) == [])
        }
    }
}

extension AppChange {
    fileprivate static func asking(_ verifier: Verifier) -> AppChange {
        var change = AppChange()
        change.verifier = verifier
        return change
    }
}
