import AppStoreSimulator
import Foundation
import Postgres
import Testing
import Tracking

/// Everything rests for months of pretend time, and goes on: what happened to the demo when it was started again.
@Suite("Everything rests for months and goes on")
struct StopAndGoTests {
    @Test("Accounts that were deleted during a long stop make no incident and are asked about a few times each")
    func deletedAccounts() async throws {
        var options = SimulatorOptions(seed: 7)
        options.customers = 120
        options.sandboxCustomers = 0
        options.monthSeconds = 2
        options.chances.accountDeletions = 0.02
        try await PretendWorld.with(options) { world in
            try await world.work(seconds: 2)
            // Six months; longer than an incident's window, so that what was answered before does not count.
            try await Task.sleep(for: .seconds(12))
            try await world.run("DELETE FROM ledger.verified_minute; DELETE FROM ledger.refusal")
            try await world.work(seconds: 1)
            try await world.tracker.ledger.operations.watchCanaries()
            try await world.work(seconds: 2)
            try await world.tracker.ledger.operations.watchCanaries()
            let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
            let rows = try await database.query(
                Statement(
                    name: "refused",
                    sql: """
                        SELECT (SELECT count(*) FROM ledger.incident) AS incidents,
                               count(*) FILTER (WHERE rejections > 0) AS refused, max(rejections)::int8 AS most
                        FROM ledger.receipt
                        """))
            await database.close()
            let row = try #require(rows.first)
            #expect(try row.int8("incidents") == 0)
            #expect(try row.int8("refused") > 4, "hardly any account was deleted; this test would prove little")
            #expect(try row.int8("most") <= 4)
            try await world.expectNoViolations()
        }
    }
}
