import Postgres
import SQL
import Subscriptions
import Testing

@testable import Tracking

@Suite("The schedule knows which checks ask the sandbox")
struct SandboxChecksTests {
    /// Statements that put a receipt's row back into the schedule; `receipt` 1 is of the sandbox, 2 of production.
    private static let ways:
        [(name: String, enter: @Sendable (TestLedger, Int64, StoreEnvironment) async throws -> Void)] = [
            (
                "upload",
                { test, receipt, _ in _ = try await test.upload(receipt == 1 ? "s" : "p") }
            ),
            (
                "claim of one",
                { test, receipt, _ in _ = try await test.claim(ReceiptID(receipt)) }
            ),
            (
                "settlement",
                { test, receipt, environment in
                    var answer = Answer(from: test.at(-9), asOf: test.at(0))
                    (answer.environment, answer.subscription) = (environment, OriginalTransactionID("\(receipt)"))
                    try await test.check(ReceiptID(receipt), answer)
                }
            ),
            (
                "cover",
                { test, receipt, _ in
                    _ = try await test.database.transaction {
                        try $0.query(
                            Queries.cover,
                            [.int8s([receipt]), .instants([test.now]), .texts(["sweep"]), .int8s([])])
                    }
                }
            ),
            (
                "refusals taken back",
                { test, receipt, _ in
                    try await test.run(
                        """
                        DELETE FROM ledger.incident; DELETE FROM ledger.refusal;
                        INSERT INTO ledger.incident (app_id, kind, opened_at, recognised_at, asked, refused, last_reason)
                        SELECT app_id, 'refusals', now(), now(), 9, 4, 'Apple refused.' FROM ledger.receipt WHERE receipt_id = \(receipt);
                        INSERT INTO ledger.refusal (receipt_id, app_id, refused_at, once_verified, counts, rejections_before, reason)
                        SELECT receipt_id, app_id, now(), true, true, 0, 'refused' FROM ledger.receipt WHERE receipt_id = \(receipt)
                        """)
                    _ = try await test.database.transaction { try $0.query(Queries.takeRefusalsBack, [.int4(9)]) }
                }
            ),
            (
                "support call",
                { test, receipt, environment in
                    let known = try await test.ledger.support.hastenCheck(
                        of: "\(receipt)", in: environment, of: test.app)
                    #expect(known)
                }
            ),
            (
                "notification",
                { test, receipt, environment in
                    let token = try await test.ledger.apps.openNotifications(of: "com.example.app")
                    let app = try #require(try await test.ledger.apps.notifiedApp(at: token))
                    let effect = try await test.ledger.intake.keep(
                        UnverifiedNotification(
                            version: .two, kind: "REFUND", appleID: "n\(receipt)", bundleID: "com.example.app",
                            environment: environment, originalTransactionID: OriginalTransactionID("\(receipt)"),
                            body: "{}"),
                        for: app)
                    #expect(effect == .pulled)
                }
            ),
        ]

    @Test("However a row comes into it", arguments: ways.indices)
    func doors(_ index: Int) async throws {
        let door = Self.ways[index]
        try await withLedger { test in
            // Both before either comes again: a repeated upload takes a number, too.
            #expect([try await test.upload("s").number, try await test.upload("p").number] == [1, 2])
            for (receipt, environment) in [(1, StoreEnvironment.sandbox), (2, .production)] {
                var answer = Answer(from: test.at(-9), asOf: test.at(-1))
                (answer.environment, answer.subscription) = (environment, OriginalTransactionID("\(receipt)"))
                try await test.check(ReceiptID(Int64(receipt)), answer)
                try await test.run("DELETE FROM ledger.poll_schedule WHERE receipt_id = \(receipt)")
                try await door.enter(test, Int64(receipt), environment)
                try await test.expectRows(
                    "SELECT is_sandbox FROM ledger.poll_schedule WHERE receipt_id = \(receipt)",
                    [[.bool(environment == .sandbox)]])
            }
        }
    }
}
