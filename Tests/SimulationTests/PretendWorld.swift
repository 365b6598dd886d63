import AppStore
import AppStoreSimulator
import AsyncHTTPClient
import Foundation
import Ledger
import Logging
import Postgres
import ServiceLifecycle
import Subscriptions
import Synchronization
import TestSupport
import Tracking

/// A pretend App Store over real HTTP, a real database, and the line between them.
struct PretendWorld {
    let simulator: Simulator
    let clock: StoppableClock
    let tracker: Tracker
    let connectionString: String
    /// Where the pretend App Store listens.
    let port: Int
    static let masterKey = [UInt8](repeating: 7, count: 32)

    /// Runs `body` in a world of the given population, then takes everything down.
    static func with(
        seed: UInt64, customers: Int, sandboxCustomers: Int, monthSeconds: Double, leaseSeconds: Double = 10,
        _ body: (PretendWorld) async throws -> Void
    ) async throws {
        print("simulation seed \(seed)")
        var options = SimulatorOptions(seed: seed)
        options.port = 0
        options.customers = customers
        options.sandboxCustomers = sandboxCustomers
        options.monthSeconds = monthSeconds
        let clock = StoppableClock()
        let simulator = Simulator(options, clock: clock.simulatorClock)
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let server = Task { try await simulator.run { port.yield($0) } }
        defer { server.cancel() }
        guard let listening = await ports.first(where: { _ in true }) else { return }
        try await withTestDatabase { database, connectionString in
            try await withStore(at: listening) { store in
                let seal = try SecretSeal(masterKey: masterKey)
                let ledger = SubscriptionLedger(database: database, seal: seal)
                _ = try await ledger.migrate()
                let bundle = BundleID(options.bundleID)
                try await ledger.addApp(NewApp(bundleID: bundle, secret: options.sharedSecret, callsPerSecond: 0))
                let tracker = Tracker(
                    ledger: ledger, appStore: store,
                    options: TrackerOptions(speedup: Int(30 * 86400 / monthSeconds), leaseSeconds: leaseSeconds),
                    logger: quietLogger)
                let world = PretendWorld(
                    simulator: simulator, clock: clock, tracker: tracker, connectionString: connectionString,
                    port: listening)
                try await world.importEverybody()
                try await body(world)
            }
        }
    }

    private static func withStore(at port: Int, _ body: (AppStoreClient) async throws -> Void) async throws {
        let options = AppStoreOptions(
            productionURL: "http://127.0.0.1:\(port)/verifyReceipt",
            sandboxURL: "http://127.0.0.1:\(port)/sandbox/verifyReceipt", deadline: .seconds(5))
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: options.clientConfiguration)
        do {
            try await body(AppStoreClient.live(options, client: client) { print($0) })
        } catch {
            try await client.shutdown()
            throw error
        }
        try await client.shutdown()
    }

    private func importEverybody() async throws {
        let submissions = simulator.receipts().map {
            Submission(bundleID: BundleID($0.app), customer: $0.customer, receipt: $0.receipt, imported: true)
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

    /// Asks about every receipt once more, due or not.
    func checkEverything() async throws {
        for receipt in try await tracker.ledger.receipts(limit: 10_000) {
            _ = try await tracker.check(receipt.id)
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

    func stop() {
        stoppedAt.withLock { $0 = SimulatorClock.system.milliseconds() }
    }
}
