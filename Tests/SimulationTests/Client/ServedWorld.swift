import AppStoreSimulator
import Foundation
import PerennialClient
import Subscriptions
import Testing
import Tracking

/// A pretend world with the real server as a process of its own, and a client of it. The app sells coins.
struct ServedWorld {
    let world: PretendWorld
    /// The server's process.
    let process: PerennialProcess
    /// Where it listens.
    let address: String
    /// A key of scope `write` without a limit.
    let secret: String

    /// Runs `body` in such a world, then takes everything down. A month lasts a day.
    static func with(
        seed: UInt64, customers: Int = 2, _ body: (ServedWorld) async throws -> Void
    ) async throws {
        try await PretendWorld.with(seed: seed, customers: customers, sandboxCustomers: 0, monthSeconds: 86_400) {
            world in
            var coins = CatalogProduct(
                id: ProductID(world.bundleID.text + ".coins"), kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
            // Apple's dates are of whole seconds, so a purchase can seem to be before a catalog of the same second.
            coins.deliversSince = Instant(milliseconds: 0)
            try await world.tracker.ledger.apps.applyCatalog([coins], to: world.bundleID)
            let secret = try await world.tracker.ledger.apps.createKey(
                scope: .write, for: world.bundleID, rate: RequestRate(perSecond: 0)
            ).secret
            try await world.serverSettings { settings in
                let process = try PerennialProcess(["serve"], in: world, further: settings)
                defer { process.kill() }
                let address = try #require(try await process.address(), "\(process.said)")
                try await body(ServedWorld(world: world, process: process, address: address, secret: secret))
                _ = await process.stop()
                try process.forget()
            }
        }
    }

    /// The bundle id of the app.
    var app: String { world.bundleID.text }

    /// The server as a service with the key sees it.
    var server: PerennialServer { server(key: secret) }

    /// The server with this key, or as a device without one.
    func server(key: String?, transport: Transport = .urlSession) -> PerennialServer {
        PerennialServer(
            at: URL(string: address) ?? URL(filePath: "/"), app: app, key: key, transport: transport)
    }
}
