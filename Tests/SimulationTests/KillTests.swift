import AppStoreSimulator
import Foundation
import Ledger
import Subscriptions
import TestSupport
import Testing
import Tracking

/// Real processes killed for real: what they had claimed is taken over, and nothing is lost or doubled.
@Suite("Workers are killed for real")
struct KillTests {
    @Test("Another worker takes over a killed worker's receipts")
    func aKilledWorkersReceiptsAreTakenOver() async throws {
        try await PretendWorld.with(seed: 77, customers: 40, sandboxCustomers: 0, monthSeconds: 6, leaseSeconds: 2) {
            world in
            for round in 1...3 {
                let worker = try world.startWorkerProcess(leaseSeconds: 2, speedup: 432_000)
                try await Task.sleep(for: .milliseconds(1200))
                kill(worker.processIdentifier, SIGKILL)
                worker.waitUntilExit()
                print("killed worker \(round)")
            }
            try await world.work(seconds: 6)
            let status = try await world.tracker.ledger.operations.status()
            #expect(status.unverified == 0)
            #expect(status.lanes.reduce(0) { $0 + $1.overdue } == 0)
            world.clock.stop()
            try await world.checkEverything()
            let reported = try await world.reported()
            for customer in world.simulator.truth() where !customer.accountDeleted {
                for truth in customer.subscriptions {
                    let now = try #require(reported.subscriptions[truth.originalTransactionID])
                    #expect(now.periods == truth.periods.count, "periods of \(truth.originalTransactionID)")
                    #expect(
                        truth.agrees(with: now), "access of \(truth.originalTransactionID)")
                }
            }
            try await world.expectNoViolations()
        }
    }

    /// The answers come within the patience of a stop, so that they are to be settled when the database is away.
    @Test("A worker that is asked to stop while PostgreSQL is away stops within its patience", .timeLimit(.minutes(2)))
    func aWorkerStopsWithoutItsDatabase() async throws {
        var options = SimulatorOptions(seed: 31)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (300, 0, 86_400)
        options.latencyMilliseconds = 3_000
        let cluster = try await PrivateCluster()
        try await cluster.start()
        try await PretendWorld.with(options, leaseSeconds: 60, connectionString: cluster.connectionString) { world in
            let worker = try PerennialProcess(["worker"], in: world, further: ["PERENNIAL_LEASE_SECONDS": "60"])
            while world.simulator.callCount < 20, worker.process.isRunning {
                try await Task.sleep(for: .milliseconds(10))
            }
            try await cluster.stop(immediate: true)
            let asked = ContinuousClock.now
            #expect(await worker.stop() == 0, "\(worker.said)")
            let took = ContinuousClock.now - asked
            print("stopped without a database in \(took)")
            #expect(took < .seconds(12), "\(worker.said)")
            #expect(worker.said.contains("worker stopped"), "\(worker.said)")
            try worker.forget()
        }
        try await cluster.remove()
    }
}

extension PretendWorld {
    /// A worker of the real executable as a process of its own.
    func startWorkerProcess(leaseSeconds: Int, speedup: Int) throws -> Process {
        try start(["worker"], leaseSeconds: leaseSeconds, speedup: speedup)
    }

    /// The real executable as a process of its own; what it prints is dropped.
    func start(_ arguments: [String], leaseSeconds: Int = 10, speedup: Int) throws -> Process {
        let process = Process()
        process.executableURL = Self.productsFolder.appendingPathComponent("perennial")
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.environment = [
            "DATABASE_URL": connectionString,
            "PERENNIAL_MASTER_KEY": Data(Self.masterKey).base64EncodedString(),
            "PERENNIAL_APPSTORE_URL": "http://127.0.0.1:\(port)/verifyReceipt",
            "PERENNIAL_APPSTORE_SANDBOX_URL": "http://127.0.0.1:\(port)/sandbox/verifyReceipt",
            "PERENNIAL_POLL_SPEEDUP": "\(speedup)", "PERENNIAL_LEASE_SECONDS": "\(leaseSeconds)",
            "PERENNIAL_LOG_LEVEL": "error",
        ]
        try process.run()
        return process
    }

    static var productsFolder: URL {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    }
}
