import Foundation
import Postgres
import Subscriptions
import TestSupport
import Tracking

/// A shop that sells one app's products: the machines, the API key, and the shop's own database in the same cluster.
struct ShopWorld {
    static let app = "com.example.tracker"
    static let unitsOfCoins = 100
    /// The app's shared secret.
    static let sharedSecret = "0123456789abcdef0123456789abcdef"
    static let speedup = 30 * 86_400 / ShopMachines.monthSeconds

    let machines: ShopMachines
    let secret: String
    /// Perennial's database, for what is compared.
    let ledger: Database
    /// The database of the shop's service.
    let shop: Database
    let kills: Kills

    /// Runs `body` in a shop, then takes everything down.
    static func with(seed: UInt64, _ body: (ShopWorld) async throws -> Void) async throws {
        let cluster = try await PrivateCluster()
        try await cluster.start()
        do {
            try await open(on: cluster, seed: seed, body)
        } catch {
            try await cluster.stop(immediate: true)
            try await cluster.remove()
            throw error
        }
        try await cluster.stop(immediate: true)
        try await cluster.remove()
    }

    private static func open(
        on cluster: PrivateCluster, seed: UInt64, _ body: (ShopWorld) async throws -> Void
    ) async throws {
        let simulator = try PerennialProcess(
            [
                "simulator", "--port", "0", "--seed", "\(seed)", "--customers", "0", "--sandbox-customers", "0",
                "--arrivals-per-month", "0", "--plain", "--month-seconds", "\(ShopMachines.monthSeconds)",
            ], environment: [:])
        defer { simulator.kill() }
        guard let store = try await simulator.address() else { throw ShopMachines.Ended(description: simulator.said) }
        try await HTTPCalls.send("\(store)/simulator/secret", ["secret": sharedSecret])
        let connect = Database(DatabaseConfiguration(connectionString: cluster.connectionString)) { _ in }
        try await connect.runOutsideTransaction("CREATE DATABASE shop")
        await connect.close()
        let shop = Database(
            DatabaseConfiguration(
                connectionString: cluster.connectionString.replacing("dbname=postgres", with: "dbname=shop"))
        ) { _ in }
        try await shop.transaction { try $0.script(ShopConsumer.tables) }
        let ledger = Database(DatabaseConfiguration(connectionString: cluster.connectionString)) { _ in }
        let secret = try await prepare(ledger)
        let environment = [
            "DATABASE_URL": cluster.connectionString,
            "PERENNIAL_MASTER_KEY": Data(PretendWorld.masterKey).base64EncodedString(),
            "PERENNIAL_APPSTORE_URL": "\(store)/verifyReceipt",
            "PERENNIAL_APPSTORE_SANDBOX_URL": "\(store)/sandbox/verifyReceipt", "PERENNIAL_POLL_SPEEDUP": "\(speedup)",
            "PERENNIAL_LEASE_SECONDS": "\(ShopMachines.leaseSeconds)", "PERENNIAL_HTTP_PORT": "0",
        ]
        try await applyCatalog(environment)
        let machines = try await ShopMachines(
            cluster: cluster, simulator: simulator, store: "\(store)/simulator", environment: environment)
        do {
            try await body(
                ShopWorld(machines: machines, secret: secret, ledger: ledger, shop: shop, kills: Kills(machines)))
        } catch {
            await machines.stop()
            throw error
        }
        await machines.stop()
        await ledger.close()
        await shop.close()
    }

    /// Migrates, adds the app, and makes a key.
    private static func prepare(_ database: Database) async throws -> String {
        let ledger = SubscriptionLedger(
            database: database, seal: try SecretSeal(masterKey: PretendWorld.masterKey), speedup: speedup)
        _ = try await ledger.operations.migrate()
        try await ledger.apps.add(
            BundleID(app), secret: sharedSecret, callsPerSecond: 0)
        return try await ledger.apps.createKey(scope: .write, for: BundleID(app), rate: RequestRate(perSecond: 0))
            .secret
    }

    private static func applyCatalog(_ environment: [String: String]) async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "catalog-\(UUID()).yaml")
        let catalog = """
            app: \(app)
            products:
              - {id: \(app).weekly, kind: auto_renewable, group: "20000001", level: 2, period: P1W, entitlements: [pro]}
              - {id: \(app).season, kind: non_renewing, period: P3M, entitlements: [shows]}
              - {id: \(app).coins, kind: consumable, credit: coins, units: \(unitsOfCoins), entitlements: []}
              - {id: \(app).lifetime, kind: non_consumable, entitlements: [themes]}
            """
        try Data(catalog.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let process = try PerennialProcess(["catalog", "apply", file.path], environment: environment)
        guard await process.end() == 0 else { throw ShopMachines.Ended(description: process.said) }
        try process.forget()
        // Apple's dates of purchases are whole seconds, and what was bought before the catalog is not delivered.
        try await Task.sleep(for: .seconds(1))
    }

    /// An address of the API now; a server that was killed comes back elsewhere.
    func api(_ path: String) async -> String { await machines.address + "/v1/apps/\(Self.app)/" + path }

    var keyHeader: [String: String] { ["Authorization": "Bearer \(secret)"] }
}
