import AppStoreSimulator
import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

/// Lookups from a real streaming standby: the same answers as the primary's, and answers while either of them is away.
@Suite(
    "Lookups come from a streaming standby",
    .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"))
struct StandbyTests {
    @Test(
        "Lookups have the same answers from the standby, and answers while either server is away",
        .timeLimit(.minutes(5)))
    func lookupsFollowWhoeverIsThere() async throws {
        let primary = try await PrivateCluster()
        try await primary.start()
        let standby = try await PrivateCluster(following: primary)
        try await standby.start()
        var simulated = SimulatorOptions(seed: 20_261_124)
        (simulated.customers, simulated.sandboxCustomers, simulated.monthSeconds) = (80, 5, 8)
        try await PretendWorld.with(simulated, leaseSeconds: 10, connectionString: primary.connectionString) { world in
            try await world.work(seconds: 6)
            let secret = try await world.tracker.ledger.apps.createKey(
                scope: .admin, for: nil, rate: RequestRate(perSecond: 0)
            ).secret
            let direct = try await Served(world, secret)
            let served = try await Served(world, secret, reads: standby.connectionString)
            try await sameAnswers(world, direct.api, served.api, standby)
            try await whileTheStandbyIsAway(world, direct.api, served.api, standby)
            try await whileThePrimaryIsAway(world, served.api, primary)
            for server in [direct, served] { try await server.end() }
            try await world.expectNoViolations()
        }
        for cluster in [standby, primary] {
            try await cluster.stop(immediate: true)
            try await cluster.remove()
        }
    }

    @Test(
        "A promoted standby answers no lookup while the primary is there, and the log says so", .timeLimit(.minutes(5)))
    func promoted() async throws {
        let primary = try await PrivateCluster()
        try await primary.start()
        let standby = try await PrivateCluster(following: primary)
        try await standby.start()
        var simulated = SimulatorOptions(seed: 20_261_128)
        (simulated.customers, simulated.sandboxCustomers) = (2, 0)
        try await PretendWorld.with(simulated, leaseSeconds: 10, connectionString: primary.connectionString) { world in
            let ledger = world.tracker.ledger
            let secret = try await ledger.apps.createKey(scope: .admin, for: nil, rate: RequestRate(perSecond: 0))
                .secret
            let served = try await Served(world, secret, reads: standby.connectionString)
            _ = try await Self.catchUp(world, standby)
            #expect(try await served.api.get("/readyz").json.description == Self.ready(standby: "following"))
            let database = Database(DatabaseConfiguration(connectionString: standby.connectionString)) { print($0) }
            let promotion = try await database.query(Self.text("SELECT pg_promote() AS is_promoted")).first
            #expect(try promotion?.bool("is_promoted") == true)
            await database.close()
            _ = try await ledger.customers.grant(
                "premium", to: "kim", of: world.bundleID, until: nil,
                deciding: try ManualDecision(by: "tester", because: "a test"))
            for _ in 0..<3 {
                #expect(try await served.api.get("/readyz").json.description == Self.ready(standby: "foreign"))
                let path = "/v1/apps/\(world.bundleID)/customers/kim/entitlements"
                let found = try await served.api.get(path).json.description
                #expect(found.contains(#""premium""#), "\(found)")
            }
            let line = "DATABASE_READ_URL leads to no standby of the primary"
            try await world.eventually(within: 20) { served.said.contains(line) }
            #expect(served.said.ranges(of: line).count == 1)
            // While the primary is away it answers, and the first lookup finds that out.
            try await primary.freeze()
            let answer = try await served.api.time("/v1/apps/\(world.bundleID)/customers/kim/entitlements")
            await primary.thaw()
            #expect(answer.status == 200, "\(answer)")
            try await served.end()
            try await world.expectNoViolations()
        }
        for cluster in [standby, primary] {
            try await cluster.stop(immediate: true)
            try await cluster.remove()
        }
    }

    private func sameAnswers(
        _ world: PretendWorld, _ direct: APIClient, _ served: APIClient, _ standby: PrivateCluster
    ) async throws {
        #expect(try await served.get("/readyz").json.description == Self.ready(standby: "following"))
        let caughtUp = try await Self.catchUp(world, standby)
        for customer in world.simulator.receipts() {
            let path = "/v1/apps/\(world.bundleID)/customers/\(customer.customer)"
            let asked = "entitlements?at=\(caughtUp)&known_at=\(caughtUp)"
            let (one, other) = (try await direct.get("\(path)/\(asked)"), try await served.get("\(path)/\(asked)"))
            #expect(one.status == 200 && one.json == other.json)
            let whole = try await served.get(path)
            #expect(whole.status == 200, "\(whole.json)")
        }
        let many: [String: any Sendable] = [
            "customers": world.simulator.receipts().map(\.customer), "at": caughtUp, "known_at": caughtUp,
        ]
        let path = "/v1/apps/\(world.bundleID)/entitlements:batch"
        #expect(try await direct.post(path, many).json == served.post(path, many).json)
        #expect(try await served.get("/v1/events?after=0&limit=10").status == 200)
        #expect(try await Self.hasAnswered(standby), "the standby was not asked at all")
    }

    private func whileTheStandbyIsAway(
        _ world: PretendWorld, _ direct: APIClient, _ served: APIClient, _ standby: PrivateCluster
    ) async throws {
        try await standby.stop(immediate: true)
        let path = "/v1/apps/\(world.bundleID)/customers/\(try #require(world.simulator.receipts().first).customer)"
        for _ in 0..<20 { #expect(try await served.get("\(path)/entitlements").status == 200) }
        #expect(try await served.get("/readyz").json.description == Self.ready(standby: "away"))
        #expect(try await served.get("/healthz").status == 200)
        try await standby.start()
        while try await served.get("/readyz").json.description != Self.ready(standby: "following") {
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    private func whileThePrimaryIsAway(
        _ world: PretendWorld, _ served: APIClient, _ primary: PrivateCluster
    ) async throws {
        try await primary.stop(immediate: true)
        let customer = try #require(world.simulator.receipts().first)
        let app = "/v1/apps/\(world.bundleID)"
        for _ in 0..<20 {
            #expect(try await served.get("\(app)/customers/\(customer.customer)/entitlements").status == 200)
            #expect(try await served.get("\(app)/customers/\(customer.customer)").status == 200)
        }
        let ready = try await served.get("/readyz")
        #expect(ready.status == 200 && ready.json.description.contains(#""primary":"away""#), "\(ready.json)")
        let refused = try await served.post(
            "\(app)/receipts", ["customer": customer.customer, "receipt": customer.receipt])
        #expect(refused.status == 503, "\(refused.json)")
        try await primary.start()
        while try await served.get("/readyz").json.description != Self.ready(standby: "following") {
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    private static func ready(standby: String) -> String {
        #"{"primary":"there","standby":"\#(standby)","status":"ready"}"#
    }

    /// Waits until the standby has what the primary has; answers an instant before which both know the same.
    private static func catchUp(_ world: PretendWorld, _ standby: PrivateCluster) async throws -> String {
        let moment = try await world.tracker.ledger.now()
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        let position = try #require(try await database.query(text("SELECT pg_current_wal_lsn()::text AS lsn")).first)
        let lsn = try position.text("lsn")
        await database.close()
        let follower = Database(DatabaseConfiguration(connectionString: standby.connectionString)) { print($0) }
        while true {
            let row = try await follower.query(text("SELECT pg_last_wal_replay_lsn() >= '\(lsn)' AS is_there")).first
            if try row?.bool("is_there") == true { break }
            try await Task.sleep(for: .milliseconds(20))
        }
        await follower.close()
        return moment.iso8601
    }

    /// Whether a session's last statement on the standby was a lookup.
    private static func hasAnswered(_ standby: PrivateCluster) async throws -> Bool {
        let database = Database(DatabaseConfiguration(connectionString: standby.connectionString)) { print($0) }
        let sql = """
            SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%ledger.entitlements%')
                AS answered
            """
        let row = try #require(try await database.query(text(sql)).first)
        await database.close()
        return try row.bool("answered")
    }

    private static func text(_ sql: String) -> Statement { Statement(name: sql, sql: sql) }
}

/// A server as a process, on a world's database.
struct Served {
    let api: APIClient
    private let process: PerennialProcess

    init(_ world: PretendWorld, _ secret: String, reads: String? = nil) async throws {
        process = try PerennialProcess(["serve"], in: world, further: reads.map { ["DATABASE_READ_URL": $0] } ?? [:])
        let address = try #require(try await process.address(), "\(process.said)")
        api = APIClient(address: address, secret: secret)
    }

    var said: String { process.said }

    func end() async throws {
        #expect(await process.stop() == 0, "\(process.said)")
        try process.forget()
    }
}
