import AppStore
@testable import AppStoreSimulator
import AsyncHTTPClient
import Crypto
import Foundation
import Logging
import NIOCore
import Postgres
import ServiceLifecycle
import Subscriptions
import Synchronization
import TestSupport
import Testing
import Tracking

/// A pretend App Store over real HTTP, a real database, and the line between them.
struct PretendWorld {
    let simulator: Simulator
    let clock: StoppableClock
    let tracker: Tracker
    let connectionString: String
    /// Where the pretend App Store listens.
    let port: Int
    /// The one app.
    let bundleID: BundleID
    /// How many times faster than life its months are.
    let speedup: Int
    static let masterKey = [UInt8](repeating: 7, count: 32)

    /// Runs `body` in a world of the given population, then takes everything down.
    static func with(
        seed: UInt64, customers: Int, sandboxCustomers: Int, monthSeconds: Double, leaseSeconds: Double = 10,
        _ body: (PretendWorld) async throws -> Void
    ) async throws {
        var options = SimulatorOptions(seed: seed)
        options.customers = customers
        options.sandboxCustomers = sandboxCustomers
        options.monthSeconds = monthSeconds
        try await with(options, leaseSeconds: leaseSeconds, body)
    }

    /// What the operator imports at the beginning.
    enum Imported {
        case receipts
        case signedTransactions
    }

    /// The same with every option of the App Store simulator.
    static func with(
        _ options: SimulatorOptions, leaseSeconds: Double = 10, importing imported: Imported = .receipts,
        _ body: (PretendWorld) async throws -> Void
    ) async throws {
        try await withMigratedDatabase { _, connectionString in
            try await with(
                options, leaseSeconds: leaseSeconds, connectionString: connectionString, importing: imported, body)
        }
    }

    /// The same in a given database, which is migrated if it is empty.
    static func with(
        _ options: SimulatorOptions, leaseSeconds: Double, connectionString: String,
        importing imported: Imported = .receipts, _ body: (PretendWorld) async throws -> Void
    ) async throws {
        print("simulation seed \(options.seed)")
        var options = options
        options.port = 0
        let clock = StoppableClock()
        let simulator = Simulator(options, clock: clock.simulatorClock, callClock: .system)
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let server = Task { try await simulator.run { port.yield($0) } }
        defer { server.cancel() }
        guard let listening = await ports.first(where: { _ in true }) else { return }
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print("world: \($0)") }
        try await withStore(of: simulator, at: listening) { store in
            let speedup = Int(30 * 86400 / options.monthSeconds)
            let ledger = SubscriptionLedger(
                database: database, seal: try SecretSeal(masterKey: masterKey), speedup: speedup)
            _ = try await ledger.operations.migrate()
            let bundle = BundleID(options.bundleID)
            try await ledger.apps.add(bundle, secret: options.sharedSecret, callsPerSecond: 0)
            try await ledger.apps.storeServerKey(
                try ConnectKey(pem: serverKey.pemRepresentation, id: serverKeyID, issuer: issuer), of: bundle)
            let tracker = Tracker(
                ledger: ledger, appStore: store, options: TrackerOptions(leaseSeconds: leaseSeconds),
                logger: quietLogger, signedTexts: try verifier(of: simulator))
            let world = PretendWorld(
                simulator: simulator, clock: clock, tracker: tracker, connectionString: connectionString,
                port: listening, bundleID: bundle, speedup: speedup)
            try await world.importEverybody(imported)
            try await body(world)
        }
        await database.close()
    }

    static let (serverKeyID, issuer) = ("S1", "57246542-96fe-1a63-e053-0824d011072a")
    /// The key that signs requests to the Server API.
    static let serverKey = P256.Signing.PrivateKey()

    private static func verifier(of simulator: Simulator) throws -> SignedTextVerifier {
        SignedTextVerifier(trusting: try SigningRoot(der: try simulator.signingAuthority().certificates[2]))
    }

    private static func withStore(
        of simulator: Simulator, at port: Int, _ body: (AppStoreClient) async throws -> Void
    ) async throws {
        let base = "http://127.0.0.1:\(port)"
        let options = AppStoreOptions(
            productionURL: "http://127.0.0.1:\(port)/verifyReceipt",
            sandboxURL: "http://127.0.0.1:\(port)/sandbox/verifyReceipt", deadline: .seconds(5))
        try await options.withClient { client in
            let key = [
                "key_id": serverKeyID, "issuer_id": issuer, "public_key": serverKey.publicKey.pemRepresentation,
            ]
            _ = try await client.post(
                url: "\(base)/simulator/server-keys", body: .bytes(try JSONEncoder().encode(key))
            ).get()
            let serverOptions = ServerAPIOptions(
                productionURL: base, sandboxURL: "\(base)/sandbox", deadline: .seconds(5))
            let server = ServerAPIClient.live(serverOptions, client: client, verifier: try verifier(of: simulator))
            try await body(AppStoreClient.live(options, client: client, server: server) { print($0) })
        }
    }

    private func importEverybody(_ imported: Imported) async throws {
        let submissions =
            switch imported {
            case .receipts:
                simulator.receipts().map {
                    Submission(bundleID: BundleID($0.app), customer: $0.customer, receipt: $0.receipt, imported: true)
                }
            case .signedTransactions:
                try simulator.signedTransactions().map {
                    Submission(
                        bundleID: BundleID($0.app), customer: $0.customer,
                        subject: .signedTransaction($0.signedTransaction), imported: true)
                }
            }
        for result in try await tracker.store(submissions) { _ = try result.get() }
    }

    /// Runs a worker for a while, then stops it gracefully.
    func work(seconds: Double) async throws {
        let group = ServiceGroup(
            configuration: .init(services: [.init(service: Worker(tracker))], logger: Self.quietLogger))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            try await Task.sleep(for: .seconds(seconds))
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    /// Asks about every receipt once more, due or not; whatever is expected was asked about in time before.
    func checkEverything() async throws {
        let uncovered = try await violations([.coverage, .purchaseCoverage, .poller, .nextCheck])
        #expect(uncovered.map(\.sentence) == [])
        let everything = try await tracker.ledger.customers.receipts(limit: 100_000).map(\.id)
        try await check(everything)
        // What Apple took back shortly before counts on the second answer. Others may renew within the steps.
        var doubted = try await receiptsInDoubt()
        var steps = 0
        while !doubted.isEmpty {
            steps += 1
            guard steps < 20 else {
                Issue.record("a second answer never counted: \(try await doubts())")
                return
            }
            // A little more than the ten minutes after which a second answer counts.
            clock.step(milliseconds: Int64(660_000 / speedup) + 1)
            try await check(doubted)
            doubted = try await receiptsInDoubt()
            guard doubted.isEmpty else { continue }
            try await check(everything)
            doubted = try await receiptsInDoubt()
        }
        try await tracker.ledger.feed.sequence()
    }

    /// The receipts that poll what an answer took back and no second one did.
    private func receiptsInDoubt() async throws -> [ReceiptID] {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
        let rows = try await database.query(
            Statement(
                name: "in_doubt",
                sql: """
                    SELECT r.receipt_id
                    FROM (SELECT polled_by FROM ledger.subscription WHERE suspected IS NOT NULL
                          UNION SELECT polled_by FROM ledger.purchase WHERE facts ? 'refund_retracted_at_ms') d
                    JOIN ledger.receipt r ON r.receipt_id = d.polled_by WHERE r.rejections = 0
                    """))
        await database.close()
        return try rows.map { ReceiptID(try $0.int8("receipt_id")) }
    }

    /// What is in doubt, for people.
    private func doubts() async throws -> [String] {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
        let rows = try await database.query(
            Statement(
                name: "doubts",
                sql: """
                    SELECT concat_ws(' ', s.original_transaction_id, s.as_of, s.suspected::text, l.omitted_at, r.outcome, r.reason) AS doubt
                    FROM ledger.subscription s JOIN ledger.receipt r ON r.receipt_id = s.polled_by
                    LEFT JOIN ledger.receipt_subscription l ON l.receipt_id = r.receipt_id AND l.subscription_id = s.subscription_id
                    WHERE s.suspected IS NOT NULL
                    UNION ALL
                    SELECT concat_ws(' ', p.original_transaction_id, p.facts::text, l.omitted_at, r.outcome, r.reason)
                    FROM ledger.purchase p JOIN ledger.receipt r ON r.receipt_id = p.polled_by
                    LEFT JOIN ledger.receipt_purchase l ON l.receipt_id = r.receipt_id AND l.purchase_id = p.purchase_id
                    WHERE p.facts ? 'refund_retracted_at_ms'
                    """))
        await database.close()
        return try rows.map { try $0.text("doubt") }
    }

    private func check(_ receipts: [ReceiptID]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for part in 0..<8 {
                group.addTask {
                    for index in stride(from: part, to: receipts.count, by: 8) { try await check(receipts[index]) }
                }
            }
            try await group.waitForAll()
        }
    }

    /// What the schema `perennial` says of the instant at which the store's clock stopped.
    func reported() async throws -> Reported {
        try await Reported(connectionString: connectionString, at: clock.simulatorClock.milliseconds())
    }

    /// Runs SQL.
    func run(_ script: String) async throws {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
        try await database.transaction { try $0.script(script) }
        await database.close()
    }

    /// The one number that a query returns.
    func number(_ sql: String) async throws -> Int64 {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
        let rows = try await database.query(Statement(name: "number", sql: "SELECT (\(sql))::bigint AS n"))
        await database.close()
        return try rows[0].int8("n")
    }

    /// Waits until `condition` holds; records an issue after some seconds.
    func eventually(within seconds: Double, _ condition: () async throws -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(seconds)
        while try await !condition() {
            guard ContinuousClock.now < end else {
                Issue.record("not within \(seconds) s")
                return
            }
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    /// Checks a receipt; waits for a check of the same receipt that is under way.
    private func check(_ receipt: ReceiptID) async throws {
        while true {
            do {
                _ = try await tracker.check(receipt)
                return
            } catch let error as LedgerError where error.kind == .busy {
                try await Task.sleep(for: .milliseconds(500))
            }
        }
    }

    private static var quietLogger: Logger {
        var logger = Logger(label: "simulation")
        logger.logLevel = .warning
        return logger
    }
}

/// The real clock until it is stopped.
final class StoppableClock: Sendable {
    private let stoppedAt = Mutex<Int64?>(nil)

    var simulatorClock: SimulatorClock {
        SimulatorClock { [self] in stoppedAt.withLock { $0 } ?? SimulatorClock.system.milliseconds() }
    }

    /// Lets some time pass for a stopped clock; five milliseconds are about an hour of an accelerated life.
    func step(milliseconds: Int64 = 5) {
        stoppedAt.withLock { $0 = $0.map { $0 + milliseconds } }
    }

    func stop() {
        stoppedAt.withLock { $0 = SimulatorClock.system.milliseconds() }
    }
}

extension RebuildBatch {
    /// What a rebuild finds, apart from what an answer took back: that counts by the order in which answers came, and a
    /// rebuild reads them by Apple's clocks.
    var differencesBesideRetractions: [RebuildDifference] {
        let doubted = Set(differences.filter { $0.fact.hasPrefix("retracted ") }.map(\.subject))
        return differences.filter { !doubted.contains($0.subject) }
    }
}
