import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// A migrated ledger in a database of its own, with one app and one worker.
struct TestLedger: Sendable {
    let ledger: SubscriptionLedger
    let database: Database
    let connectionString: String
    let app: App
    let worker: WorkerID
    /// The database's clock when it was made.
    let now: Instant

    /// Stores a receipt made of a word.
    @discardableResult
    func upload(_ receipt: String, by customer: String = "ann", imported: Bool = false) async throws -> ReceiptID {
        let upload = Upload(appID: app.id, customer: customer, receipt: Array(receipt.utf8), imported: imported)
        return try #require(try await ledger.intake.store([upload]).first).receiptID
    }

    /// Applies a catalog; the usual one has coins that are kept for good.
    func sell(_ products: [CatalogProduct] = [CatalogProduct(id: "coins", entitlements: ["coins"])]) async throws {
        try await ledger.apps.applyCatalog(products, to: app.bundleID)
    }

    func claim(_ receipt: ReceiptID) async throws -> Claim {
        try await ledger.claims.claim(receipt, for: worker, leaseSeconds: 60)
    }

    /// Settles an answer about a claimed receipt; `server` says how far the Server API was read.
    @discardableResult
    func settle(
        _ claim: Claim, _ finding: Finding, latestReceipt: String? = nil, server: ServerRead? = nil
    ) async throws -> Settled {
        let settled = try await ledger.settlements.settleInFull(
            [settlement(claim, finding, latestReceipt: latestReceipt, server: server)])
        #expect(settled.failures.map(\.reason) == [])
        return try #require(settled.settled.first)
    }

    func settlement(
        _ claim: Claim, _ finding: Finding, latestReceipt: String? = nil, server: ServerRead? = nil
    ) -> Settlement {
        Settlement(
            claim: claim, finding: finding, body: Array("{}".utf8), latestReceipt: latestReceipt.map { Array($0.utf8) },
            server: server)
    }

    /// Claims a receipt and settles an answer about it.
    @discardableResult
    func check(
        _ receipt: ReceiptID, _ finding: Finding, latestReceipt: String? = nil, server: ServerRead? = nil
    ) async throws -> Settled {
        try await settle(try await claim(receipt), finding, latestReceipt: latestReceipt, server: server)
    }

    @discardableResult
    func check(_ receipt: ReceiptID, _ answer: Answer, latestReceipt: String? = nil) async throws -> Settled {
        try await check(receipt, .verified(answer.evidence), latestReceipt: latestReceipt)
    }

    /// An instant after all that was recorded and before all that will be: instants here are of whole milliseconds, and two
    /// changes may have the same one.
    func betweenChanges() async throws -> Instant {
        try await Task.sleep(for: .milliseconds(2))
        let instant = try await ledger.now()
        try await Task.sleep(for: .milliseconds(2))
        return instant
    }

    /// The app as it is now, with what was changed since.
    func appNow() async throws -> App { try await ledger.apps.app(app.bundleID) }

    /// Moves a time into the past or the future by `days` from the database's clock when this ledger was made.
    func at(_ days: Double) -> Instant {
        Instant(milliseconds: now.milliseconds + Int64((days * 86_400_000).rounded()))
    }
}

/// Ends what was held too long; returns how many.
@discardableResult
func endAllowances(_ ledger: SubscriptionLedger, limit: Int = 100) async throws -> Int {
    try await ledger.settlements.endAllowances(limit: limit)
}

/// Lends a migrated ledger with one app and one worker, in a database that tests use one after the other.
func withLedger<R>(
    connections: Int = 2, policy: OwnershipPolicy = .transfer, _ body: (TestLedger) async throws -> R
) async throws -> R {
    try await withReusedDatabase(connections: connections) { database, connectionString in
        try await body(try await TestLedger(database, connectionString, policy))
    }
}

/// The same in a database of its own, for a test that looks at plans, at the structure or at what the server
/// counted.
func withNewLedger<R>(
    connections: Int = 2, policy: OwnershipPolicy = .transfer, _ body: (TestLedger) async throws -> R
) async throws -> R {
    try await withMigratedDatabase(connections: connections) { database, connectionString in
        try await body(try await TestLedger(database, connectionString, policy))
    }
}

extension TestLedger {
    /// The master key of every test.
    static let seal: [UInt8] = Array(0..<32)

    fileprivate init(_ database: Database, _ connectionString: String, _ policy: OwnershipPolicy) async throws {
        let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: Self.seal))
        try await ledger.apps.add("com.example.app", callsPerSecond: 0)
        var change = AppChange()
        change.ownershipPolicy = policy
        try await ledger.apps.change("com.example.app", change)
        self.ledger = ledger
        self.database = database
        self.connectionString = connectionString
        app = try await ledger.apps.app("com.example.app")
        worker = try await ledger.claims.startWorker(host: "test", process: 1)
        now = try await ledger.now()
    }
}

/// No session waited for a lock of the transaction.
struct NotBlocked: Error {}

extension Transaction {
    /// Waits until sessions wait for a lock of this transaction, or of one that does. `pg_locks` is read anew each time,
    /// unlike `pg_stat_activity`, which stays the same for a whole transaction.
    func waitUntilAnotherIsBlocked(sessions: Int64 = 1) throws {
        let blocked = Statement.test(
            """
            WITH waiting AS MATERIALIZED (
                SELECT DISTINCT l.pid, pg_blocking_pids(l.pid) AS blockers FROM pg_locks l WHERE NOT l.granted
            ), first AS (
                SELECT w.pid FROM waiting w WHERE pg_backend_pid() = ANY(w.blockers)
            )
            SELECT count(*) AS blocked FROM waiting w
            WHERE w.pid IN (SELECT f.pid FROM first f) OR w.blockers && ARRAY(SELECT f.pid FROM first f)
            """)
        let end = ContinuousClock.now + .seconds(20)
        while try query(blocked).first?.int8("blocked") ?? 0 < sessions {
            guard ContinuousClock.now < end else { throw NotBlocked() }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }
}

/// A text as `pg_dump` writes its bytes.
func hex(_ text: String) -> String {
    text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

extension TestLedger {
    /// Everything that the database holds, as a backup would.
    func dumped() async throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["pg_dump", "--data-only", "--dbname", connectionString]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = await output.fileHandleForReading.textToEnd()
        try #require(await process.ended() == 0, "pg_dump failed")
        return text
    }
}
