import AppStoreSimulator
import Foundation
import Postgres
import Subscriptions
import Testing

/// `perennial prune` as an operator runs it.
@Suite("`perennial prune` removes what is old")
struct PruneProcessTests {
    /// Runs the command to its end.
    private func run(_ arguments: [String], in world: PretendWorld) async throws -> (status: Int32, said: String) {
        let process = try PerennialProcess(
            arguments, in: world, further: ["PERENNIAL_POLL_SPEEDUP": "\(world.speedup)"])
        defer { withExtendedLifetime(process) {} }
        let status = await process.end()
        let said = process.said
        try process.forget()
        return (status, said)
    }

    /// Commands that write leave a row of the audit each, with the user who ran them; those that only look leave none.
    private func expectAudit(in world: PretendWorld) async throws {
        let app = world.bundleID.text
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        func read(_ column: String, _ sql: String) async throws -> [String] {
            try await database.query(Statement(name: "audit_\(column)", sql: sql)).map { try $0.text(column) }
        }
        let good = "FROM perennial.receipt_now WHERE outcome = 'verified' ORDER BY receipt_id LIMIT 1"
        let receipt = try #require(try await read("receipt", "SELECT receipt_id::text AS receipt \(good)").first)
        let customer = try #require(try await read("customer", "SELECT customers[1] AS customer \(good)").first)
        for command in [
            ["rebuild"], ["rebuild", "--app", app, "--customer", customer], ["receipt", "check", "--receipt", receipt],
            ["receipt", "show", receipt], ["status"],
        ] {
            let ran = try await run(command, in: world)
            #expect(ran.status == 0, "\(command): \(ran.said)")
        }
        let sql = """
            SELECT action, bundle_id, customer, receipt_id::text AS receipt, detail ->> 'before' IS NOT NULL AS is_dated
            FROM perennial.audit_log WHERE actor = 'user \(NSUserName())' ORDER BY audit_id
            """
        let rows = try await database.query(Statement(name: "audit", sql: sql))
        let columns = ["action", "bundle_id", "customer", "receipt"]
        let expected: [[String?]] = [
            ["pruned", nil, nil, nil], ["pruned", nil, nil, nil], ["rebuilt", nil, nil, nil],
            ["rebuilt", app, customer, nil], ["receipt.checked", app, nil, receipt],
        ]
        let reported: [[String?]] = try rows.map { row in try columns.map { try row.textIfPresent($0) } }
        #expect(reported == expected)
        #expect(try rows.map { try $0.bool("is_dated") } == [true, true, false, false, false])
        await database.close()
    }

    /// How many stored answers are not the only ones about their receipts.
    private func repeated(in world: PretendWorld) async throws -> Int64 {
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        let sql = "SELECT count(*) - count(DISTINCT receipt_id) AS answers FROM ledger.observation"
        let answers = try await database.query(Statement(name: "repeated", sql: sql))[0].int8("answers")
        await database.close()
        return answers
    }

    @Test("What is old is removed, and nothing misses it", .timeLimit(.minutes(5)))
    func whatIsOldGoesAndIsNotMissed() async throws {
        try await PretendWorld.with(seed: 20_261_123, customers: 8, sandboxCustomers: 0, monthSeconds: 6) { world in
            try await world.work(seconds: 8)
            // A busy machine gives fewer answers in that time.
            while try await repeated(in: world) < 8 { try await world.work(seconds: 2) }
            // Apple's answers came long ago, those about one receipt apart, which a killed run would have left.
            try await world.run(
                """
                SELECT ledger.add_observation_month(now() - interval '5 months');
                UPDATE ledger.observation SET recorded_at = recorded_at - interval '5 months';
                """)
            let first = try await run(["prune", "--keep-months", "2"], in: world)
            #expect(first.status == 0, "\(first.said)")
            let removed = try #require(first.said.firstMatch(of: /removed ([0-9]+), still needed ([0-9]+)/))
            #expect(Int(removed.1) ?? 0 > 0 && Int(removed.2) ?? 0 > 0, "\(first.said)")
            let second = try await run(["prune", "--keep-months", "2"], in: world)
            #expect(
                second.status == 0 && second.said.contains("removed 0, still needed \(removed.2),"), "\(second.said)")
            let verified = try await run(["rebuild", "--verify"], in: world)
            #expect(verified.status == 0, "\(verified.said)")
            #expect(!verified.said.contains("cannot be rebuilt"), "\(verified.said)")
            try await world.expectNoViolations()
            try await expectAudit(in: world)
            for wrong in [
                [], ["--keep-months", "0"], ["--keep-months", "soon"], ["--keep-months", "2", "--audit-months", "-1"],
            ] {
                let refused = try await run(["prune"] + wrong, in: world)
                #expect(refused.status == 64 && refused.said.contains("months"), "\(wrong): \(refused.said)")
            }
        }
    }
}
