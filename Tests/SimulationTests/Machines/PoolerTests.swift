import AppStoreSimulator
import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

/// Everything through a real PgBouncer that lends three sessions, each for one transaction: two workers, an import, a
/// server with many clients, all at once.
@Suite(
    "Everything works behind PgBouncer", .serialized,
    .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"))
struct PoolerTests {
    @Test(
        "Workers, an import and a server share three sessions", .timeLimit(.minutes(5)),
        arguments: PrivatePooler.Options.allCases)
    func everythingWorksBehindAPooler(_ options: PrivatePooler.Options) async throws {
        let cluster = try await PrivateCluster()
        try await cluster.start()
        let pooler = try await PrivatePooler(before: cluster, sessions: 3, options: options)
        var simulated = SimulatorOptions(seed: 20_261_123)
        (simulated.customers, simulated.sandboxCustomers, simulated.monthSeconds) = (150, 10, 10)
        try await PretendWorld.with(simulated, leaseSeconds: 10, connectionString: pooler.connectionString()) { world in
            try await live(in: world)
            try await agree(world, cluster.connectionString)
            try await world.expectNoViolations()
        }
        #expect(try pooler.log().split(separator: "\n").filter { $0.contains("unclean") } == [])
        try pooler.remove()
        try await cluster.stop(immediate: true)
        try await cluster.remove()
    }

    private func live(in world: PretendWorld) async throws {
        let secret = try await world.tracker.ledger.apps.createKey(
            scope: .admin, for: nil, rate: RequestRate(perSecond: 0)
        )
        .secret
        let workers = try (0..<2).map { _ in try PerennialProcess(["worker"], in: world) }
        let server = try PerennialProcess(["serve"], in: world)
        let file = try importFile(of: world)
        let imported = try PerennialProcess(["import", file.path], in: world)
        let address = try #require(try await server.address(), "\(server.said)")
        try await ask(APIClient(address: address, secret: secret), world)
        #expect(await imported.end() == 0, "\(imported.said)")
        for process in workers + [server] { #expect(await process.stop() == 0, "\(process.said)") }
        let once = try PerennialProcess(["worker", "--once"], in: world)
        #expect(await once.end() == 0, "\(once.said)")
        for process in workers + [server, imported, once] {
            let said = process.said
            #expect(!said.contains("SQLSTATE") && !said.contains("prepared"), "\(said)")
            try process.forget()
        }
        try FileManager.default.removeItem(at: file)
    }

    /// Eight clients at once, each with lookups, uploads and pages of the feed.
    private func ask(_ api: APIClient, _ world: PretendWorld) async throws {
        let customers = world.simulator.receipts()
        let app = "/v1/apps/\(world.bundleID)"
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in 0..<8 {
                group.addTask {
                    var position: Int64 = 0
                    for round in 0..<40 {
                        let who = customers[(client * 40 + round) % customers.count]
                        let found = try await api.get("\(app)/customers/\(who.customer)/entitlements")
                        #expect(found.status == 200, "\(found.json)")
                        let page = try await api.get("/v1/events?after=\(position)&limit=20")
                        #expect(page.status == 200, "\(page.json)")
                        position += page.status == 200 ? Int64(page.json.description.matches(of: /"id":/).count) : 0
                        guard round.isMultiple(of: 4) else { continue }
                        let body = ["customer": who.customer, "receipt": who.receipt]
                        let kept = try await api.post("\(app)/receipts", body)
                        #expect([200, 202].contains(kept.status), "\(kept.json)")
                        let many = ["customers": customers.prefix(100).map(\.customer)]
                        #expect(try await api.post("\(app)/entitlements:batch", many).status == 200)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// The same receipts once more, brought by others.
    private func importFile(of world: PretendWorld) throws -> URL {
        let lines = world.simulator.receipts().map {
            #"{"app":"\#($0.app)","customer":"second \#($0.customer)","receipt":"\#($0.receipt)"}"#
        }
        let file = FileManager.default.temporaryDirectory.appending(path: "pooled-\(UUID()).ndjson")
        try Data(lines.joined(separator: "\n").utf8).write(to: file)
        return file
    }

    /// In the end the ledger, read without the pooler, tells what the store knows.
    private func agree(_ world: PretendWorld, _ direct: String) async throws {
        world.clock.stop()
        try await world.checkEverything()
        let reported = try await Reported(connectionString: direct, at: world.clock.simulatorClock.milliseconds())
        var periods = 0
        for customer in world.simulator.truth() where !customer.accountDeleted && !customer.hasLegacyReceipts {
            for truth in customer.subscriptions {
                let id = truth.originalTransactionID
                let now = try #require(reported.subscriptions[id], "subscription \(id) is unknown")
                #expect(now.periods == truth.periods.count, "periods of \(id)")
                #expect(truth.agrees(with: now), "access of \(id)")
                periods += truth.periods.count
            }
        }
        #expect(periods > 200, "the population hardly lived; this test would prove little")
    }
}
