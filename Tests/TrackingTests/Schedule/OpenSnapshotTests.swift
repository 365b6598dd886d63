import Dispatch
import Postgres
import SQL
import Subscriptions
import Testing

@testable import Tracking

/// While a transaction stays open, entries of claimed receipts stay in the index; a mark leads past them.
@Suite("An open transaction does not slow claims down")
struct OpenSnapshotTests {
    /// Pages that counting what is due reads, and what it finds.
    private func look(_ test: TestLedger, from mark: Instant?) async throws -> (pages: Int, due: Int) {
        let marks = mark.map { [DueMark(appID: test.app.id, lane: .sweep, dueAt: $0)] } ?? []
        let due = try await test.ledger.claims.due(limit: 10, from: marks)
        let pages = try await test.database.transaction { transaction in
            let file = Queries.countDue.text
            try transaction.script("PREPARE looked AS \(file)")
            let low = mark.map { "'{1}', '{sweep}', ARRAY[timestamptz 'epoch' + \($0.milliseconds) * interval '1 ms']" }
            let rows = try transaction.query(
                .test(
                    "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) "
                        + "EXECUTE looked(10, NULL, \(low ?? "'{}', '{}', '{}'"))"))
            try transaction.script("DEALLOCATE looked")
            return try rows.map { try $0.text("QUERY PLAN") }.first { $0.contains("Buffers:") } ?? ""
        }
        let numbers = pages.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }
        return (numbers.reduce(0, +), due.first { $0.lane == .sweep }?.receipts ?? 0)
    }

    @Test("A mark spares what would otherwise be read again and again")
    func marks() async throws {
        try await withNewLedger(connections: 3) { test in
            try await test.run(
                """
                INSERT INTO ledger.receipt (app_id, digest, data)
                SELECT \(test.app.id), sha256(int8send(g)), '\\x00' FROM generate_series(1, 20000) g;
                INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
                SELECT receipt_id, app_id, 'sweep', d, d FROM ledger.receipt
                CROSS JOIN LATERAL (SELECT now() - interval '1 day' + receipt_id * interval '1 second' AS d) t
                """)
            var mark = test.at(-2)
            try await test.holdingSnapshot {
                for _ in 0..<18 {
                    let quota = Quota(app: test.app, lane: .sweep, receipts: 1000)
                    let claims = try await test.ledger.claims.claim(for: test.worker, [quota], leaseSeconds: 60)
                    #expect(claims.count == 1000)
                    mark = max(mark, claims.map(\.dueAt).max() ?? mark)
                }
                let (without, with) = (try await look(test, from: nil), try await look(test, from: mark))
                #expect(without.due == 10 && with.due == 10)
                #expect(with.pages * 5 < without.pages, "\(with.pages) pages with the mark, \(without.pages) without")
            }
        }
    }
}

extension TestLedger {
    /// Runs `body` while another session keeps a transaction open that has seen the present, and has read a table.
    func holdingSnapshot(of table: String = "ledger.receipt", _ body: () async throws -> Void) async throws {
        let other = Database(DatabaseConfiguration(connectionString: connectionString, writeConnections: 1)) {
            print($0)
        }
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        // The body of a transaction has a thread of its own, which may be kept waiting.
        let end = DispatchSemaphore(value: 0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await other.transaction { transaction in
                    try transaction.script("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    _ = try transaction.query(.test("SELECT count(*) AS rows FROM \(table)"))
                    open.yield()
                    end.wait()
                }
            }
            for await _ in opened { break }
            do {
                try await body()
            } catch {
                end.signal()
                throw error
            }
            end.signal()
            try await group.waitForAll()
        }
        await other.close()
    }
}
