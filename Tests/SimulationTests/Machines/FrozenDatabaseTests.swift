import AppStoreSimulator
import Foundation
import Subscriptions
import TestSupport
import Testing
import Tracking

/// Servers whose databases take connections and answer nothing, as on a machine that hangs.
@Suite(
    "A database that hangs holds no lookup for long",
    .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"))
struct FrozenDatabaseTests {
    /// Ten seconds, and what a busy machine adds to them.
    private static let longest = Duration.seconds(20)

    @Test(
        "Lookups end within seconds while one database hangs, or both; a server starts meanwhile",
        .timeLimit(.minutes(5)))
    func frozen() async throws {
        let primary = try await PrivateCluster()
        try await primary.start()
        let standby = try await PrivateCluster(following: primary)
        try await standby.start()
        var simulated = SimulatorOptions(seed: 20_261_129)
        (simulated.customers, simulated.sandboxCustomers) = (2, 0)
        try await PretendWorld.with(simulated, leaseSeconds: 10, connectionString: primary.connectionString) { world in
            let secret = try await world.tracker.ledger.apps.createKey(
                scope: .admin, for: nil, rate: RequestRate(perSecond: 0)
            ).secret
            let direct = try await Served(world, secret)
            let served = try await Served(world, secret, reads: standby.connectionString)
            let path = "/v1/apps/\(world.bundleID)/customers/kim/entitlements"
            for api in [direct.api, served.api] { #expect(try await api.time(path).status == 200) }
            while try await !served.api.get("/readyz").json.description.contains("following") {
                try await Task.sleep(for: .milliseconds(200))
            }

            try await primary.freeze()
            try await expectRefusal(from: direct.api, path)
            for _ in 0..<3 {
                let answer = try await served.api.time(path)
                #expect(answer.status == 200 && answer.elapsed < Self.longest, "\(answer)")
            }
            let begin = ContinuousClock.now
            let late = try await Served(world, secret)
            #expect(ContinuousClock.now - begin < Self.longest, "\(late.said)")
            #expect(try await late.api.time("/healthz").status == 200)
            #expect(try await late.api.time("/readyz").status == 503)

            await primary.thaw()
            try await standby.freeze()
            try await primary.freeze()
            for _ in 0..<3 { try await expectRefusal(from: served.api, path) }
            for cluster in [primary, standby] { await cluster.thaw() }
            for server in [direct, served, late] {
                try await world.eventually(within: 60) { try await server.api.time(path).status == 200 }
                try await server.end()
            }
            try await world.expectNoViolations()
        }
        for cluster in [standby, primary] {
            try await cluster.stop(immediate: true)
            try await cluster.remove()
        }
    }

    private func expectRefusal(from api: APIClient, _ path: String) async throws {
        let answer = try await api.time(path)
        #expect(answer.status == 503 && answer.retryAfter.map { $0 > 0 } == true, "\(answer)")
        #expect(answer.elapsed < Self.longest, "\(answer)")
    }
}
