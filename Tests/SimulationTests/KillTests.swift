import AppStoreSimulator
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
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

@Suite("A server is killed for real")
struct ServerKillTests {
    @Test("A server killed while Apple answers costs its customer seconds, not the lease", .timeLimit(.minutes(3)))
    func aKilledServersReceiptIsTakenOver() async throws {
        try await PretendWorld.with(seed: 78, customers: 2, sandboxCustomers: 0, monthSeconds: 86_400) { world in
            let secret = try await world.tracker.ledger.apps.createKey(
                scope: .write, for: world.bundleID, rate: RequestRate(perSecond: 0)
            ).secret
            let lease = ["PERENNIAL_LEASE_SECONDS": "60"]
            let servers = try (0..<2).map { _ in try PerennialProcess(["serve"], in: world, further: lease) }
            defer { for server in servers { server.kill() } }
            var addresses: [String] = []
            for server in servers { addresses.append(try #require(try await server.address(), "\(server.said)")) }
            let customer = world.simulator.createCustomer(CustomerScript())
            @Sendable func send(to address: String) async throws -> (status: UInt, retryAfterSeconds: Int?) {
                var request = HTTPClientRequest(url: "\(address)/v1/apps/\(world.bundleID.text)/receipts")
                request.method = .POST
                request.headers.add(name: "Authorization", value: "Bearer \(secret)")
                request.headers.add(name: "Content-Type", value: "application/json")
                let body = ["customer": customer.customer, "receipt": customer.receipt]
                request.body = .bytes(try JSONSerialization.data(withJSONObject: body))
                let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
                let bytes = Data(try await answer.body.collect(upTo: 1 << 20).readableBytesView)
                let object = try JSONSerialization.jsonObject(with: bytes) as? [String: Any]
                return (answer.status.code, object?["retry_after_s"] as? Int)
            }
            // A first check, so that the server sends heartbeats as one does that has run for a while.
            _ = try await send(to: addresses[0])
            let beating = "SELECT count(*) FROM ledger.worker WHERE heartbeat_at > started_at"
            while try await world.number(beating) == 0 { try await Task.sleep(for: .milliseconds(200)) }
            var slow = Fault(.slow)
            slow.seconds = 40
            world.simulator.add(slow)
            let leased = "SELECT count(*) FROM ledger.poll_schedule WHERE leased_by IS NOT NULL AND due_at > now()"
            try await withThrowingTaskGroup(of: Void.self) { group in
                // The connection breaks when the server is killed.
                group.addTask { [addresses] in _ = try? await send(to: addresses[0]) }
                while try await world.number(leased) == 0 { try await Task.sleep(for: .milliseconds(50)) }
                servers[0].kill()
                let killed = ContinuousClock.now
                world.simulator.clearFaults()
                var waits: [Int] = []
                while true {
                    let answer = try await send(to: addresses[1])
                    guard answer.status != 200 else { break }
                    let wait = try #require(answer.retryAfterSeconds, "\(answer)")
                    waits.append(wait)
                    try await Task.sleep(for: .seconds(wait))
                }
                let lost = ContinuousClock.now - killed
                print("a killed server cost its customer \(lost), waits \(waits)")
                #expect(lost < .seconds(45), "the lease is 60 s; \(waits)")
                #expect(waits.allSatisfy { $0 <= 20 } && waits.count <= 3, "each wait was true: \(waits)")
                try await group.waitForAll()
            }
            for server in servers { try server.forget() }
        }
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
