import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// Where lookups are read while one of two databases is away; with a real standby in `StandbyTests`.
@Suite("The database that can be reached answers lookups")
struct ReadsTests {
    /// A server that cannot be reached.
    private func away() -> Database {
        Database(
            DatabaseConfiguration(
                connectionString: "host=127.0.0.1 port=1 user=nobody dbname=nothing", connectTimeoutSeconds: 1)
        ) { _ in }
    }

    @Test("A standby that is away costs no caller an answer")
    func standbyAway() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            let standby = away()
            let ledger = SubscriptionLedger(database: test.database, reads: standby)
            for _ in 0..<3 {
                let found = try await ledger.customers.entitlements(app: test.app.bundleID, customer: "ann")
                #expect(found.map(\.granted) == [true])
            }
            #expect(await ledger.standby() == .away)
            #expect(try await ledger.apps.registered(test.app.bundleID)?.id == test.app.id)
            #expect(try await ledger.apps.registered("com.example.nothing") == nil)
            await standby.close()
        }
    }

    @Test("Without a primary the standby answers")
    func primaryAway() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            let primary = away()
            let ledger = SubscriptionLedger(database: primary, reads: test.database)
            let found = try await ledger.customers.entitlements(app: test.app.bundleID, customer: "ann")
            #expect(found.map(\.granted) == [true])
            #expect(await ledger.standby() == .following)
            await #expect(throws: DatabaseError.self) { try await ledger.operations.requireMigrated() }
            await primary.close()
        }
    }

    @Test("The state of the standby decides which database a lookup asks first")
    func order() {
        let table: [(StandbyStanding, Bool, [ReadSource])] = [
            (.none, false, [.primary]), (.none, true, [.primary]), (.away, false, [.primary]),
            (.away, true, [.primary]), (.following, false, [.standby, .primary]),
            (.following, true, [.standby, .primary]), (.behind, false, [.primary, .standby]),
            (.behind, true, [.standby]),
        ]
        for (standing, isPrimaryAway, order) in table {
            #expect(standing.order(isPrimaryAway: isPrimaryAway) == order, "\(standing)")
        }
    }
}
