import Dispatch
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
            for name in [test.app.bundleID, "com.example.nothing"] {
                #expect(try await ledger.apps.registered(forLookupOf: name).map(\.id) == [test.app.id])
            }
            await standby.close()
        }
    }

    @Test("A standby that answers nothing holds no lookup, and is asked again once it answers", .timeLimit(.minutes(1)))
    func standbySilent() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            try await withReusedDatabase { standby, _ in
                try await Self.pretend(standby, toFollow: test.database)
                let ledger = SubscriptionLedger(database: test.database, reads: standby)
                func granted() async throws -> [Bool] {
                    try await ledger.customers.entitlements(app: test.app.bundleID, customer: "ann").map(\.granted)
                }
                // The standby knows no customer.
                while try await granted() != [] { try await Task.sleep(for: .milliseconds(50)) }
                let lock = TableLock(of: standby)
                async let holding: Void = lock.hold()
                await lock.isHeld()
                let start = ContinuousClock.now
                for _ in 0..<3 { #expect(try await granted() == [true]) }
                #expect(ContinuousClock.now - start < .seconds(20))
                #expect(await ledger.standby() == .away)
                lock.end()
                try await holding
                while await ledger.standby() != .following { try await Task.sleep(for: .milliseconds(50)) }
                while try await granted() != [] { try await Task.sleep(for: .milliseconds(50)) }
            }
        }
    }

    @Test("A primary that answers nothing holds a lookup for some seconds", .timeLimit(.minutes(1)))
    func primarySilent() async throws {
        try await withLedger { test in
            let ledger = SubscriptionLedger(database: test.database)
            let lock = TableLock(of: test.database)
            async let holding: Void = lock.hold()
            await lock.isHeld()
            let start = ContinuousClock.now
            let failure = await #expect(throws: DatabaseError.self) {
                try await ledger.customers.entitlements(app: test.app.bundleID, customer: "ann")
            }
            #expect(failure?.kind == .timedOut, "\(String(describing: failure))")
            #expect(ContinuousClock.now - start < Reads.limit * 3)
            lock.end()
            try await holding
        }
    }

    /// Gives a database the feed of another one, as a standby of it has.
    private static func pretend(_ standby: Database, toFollow primary: Database) async throws {
        let feed = try await primary.query(
            Statement(name: "feed", sql: "SELECT feed_id::text AS feed FROM ledger.feed")
        ).first?.text(
            "feed")
        let change = Statement(name: "follow", sql: "UPDATE ledger.feed SET feed_id = $1::text::uuid")
        try await standby.transaction { _ = try $0.query(change, [.text(feed)]) }
    }

    /// The states of the standby that the metrics show as the present one.
    private static func states(of ledger: SubscriptionLedger) -> [String] {
        ledger.operations.loadGauges.filter { $0.metric == .standby && $0.value == 1 }.flatMap { $0.labels.map(\.1) }
    }

    @Test("A database of another installation is asked for nothing while the primary answers")
    func foreign() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            try await withReusedDatabase { other, _ in
                let renew = Statement(name: "renew", sql: "UPDATE ledger.feed SET feed_id = gen_random_uuid()")
                try await other.transaction { _ = try $0.query(renew) }
                let ledger = SubscriptionLedger(database: test.database, reads: other)
                let journal = Journal()
                let tracker = Tracker(
                    ledger: ledger, appStore: .answering(nil), options: TrackerOptions(), logger: journal.logger)
                tracker.seeStandby()
                #expect(Self.states(of: ledger).isEmpty && journal.lines.isEmpty)
                #expect(await ledger.standby() == .foreign)
                for _ in 0..<3 { tracker.seeStandby() }
                #expect(Self.states(of: ledger) == ["foreign"] && journal.lines.count == 1, "\(journal.lines)")
                #expect(journal.lines.first?.hasPrefix("warning DATABASE_READ_URL leads to no standby") == true)
                for _ in 0..<3 {
                    let found = try await ledger.customers.entitlements(app: test.app.bundleID, customer: "ann")
                    #expect(found.map(\.granted) == [true])
                }
                try await Self.pretend(other, toFollow: test.database)
                #expect(await ledger.standby() == .following)
                for _ in 0..<3 { tracker.seeStandby() }
                #expect(Self.states(of: ledger) == ["following"])
                let away = away()
                #expect(await SubscriptionLedger(database: away, reads: other).standby() == .following)
                await away.close()
            }
        }
    }

    @Test("Without a primary a standby that is slow answers too", .timeLimit(.minutes(1)))
    func primaryAwayStandbySlow() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            let primary = away()
            let ledger = SubscriptionLedger(database: primary, reads: test.database)
            let lock = TableLock(of: test.database)
            async let holding: Void = lock.hold()
            await lock.isHeld()
            async let found = ledger.customers.entitlements(app: test.app.bundleID, customer: "ann")
            while await ledger.standby() != .away { try await Task.sleep(for: .milliseconds(50)) }
            lock.end()
            try await holding
            #expect(try await found.map(\.granted) == [true])
            await primary.close()
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

/// A lock on what lookups read. It makes a database like one that hangs: it takes their statements and answers none.
private struct TableLock: Sendable {
    private let database: Database
    private let held = AsyncStream.makeStream(of: Void.self)
    private let isOver = DispatchSemaphore(value: 0)

    init(of database: Database) { self.database = database }

    /// Holds the lock until `end` is called.
    func hold() async throws {
        try await database.transaction { transaction in
            defer { held.continuation.finish() }
            try transaction.script("LOCK TABLE ledger.app, ledger.current_entitlements IN ACCESS EXCLUSIVE MODE")
            held.continuation.finish()
            isOver.wait()
        }
    }

    func isHeld() async { for await _ in held.stream {} }

    func end() { isOver.signal() }
}
