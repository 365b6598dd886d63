import AppStoreSimulator
import Foundation
import PerennialClient
import SeededRandom
import Testing

/// The client library in an app that is killed for real, against the real server and the simulator.
@Suite("An app with the client library is killed for real")
struct ClientKillTests {
    /// How receipts go to the server.
    enum Route: String, CaseIterable {
        /// With a service's key.
        case service
        /// With an order's proof.
        case device
    }

    @Test("Killed at any one step, it loses no upload and finishes the purchase", arguments: Route.allCases)
    func everyStep(route: Route) async throws {
        try await ServedWorld.with(seed: 31) { served in
            var kills = 0
            // A step comes before and after each request to the server and the store, and each change of what is kept.
            while true {
                let app = try served.app(buying: 1, by: route)
                if try await app.probe.run(killedAt: kills + 1).contains("done") { break }
                kills += 1
                _ = try await app.probe.runToTheEnd()
                try await expectAllDelivered(1, to: app, in: served)
                try #require(kills < 50)
            }
            #expect(kills >= 12)
            try await served.world.expectNoViolations()
        }
    }

    /// By a service's route: the server takes 10 calls of a device about an order in a minute.
    @Test("Killed again and again at seeded steps, it loses no upload", arguments: [UInt64(7)])
    func againAndAgain(seed: UInt64) async throws {
        try await ServedWorld.with(seed: seed) { served in
            var random = Seeded(seed: seed)
            let app = try served.app(buying: 3, by: .service)
            for _ in 0..<12 {
                let step = Int.random(in: 1...9, using: &random)
                if try await app.probe.run(killedAt: step).contains("done") { break }
            }
            _ = try await app.probe.runToTheEnd()
            try await expectAllDelivered(3, to: app, in: served)
            try await served.world.expectNoViolations()
        }
    }

    /// Every purchase was paid once, ordered once, delivered once and finished, and the queue is empty.
    private func expectAllDelivered(
        _ count: Int, to app: (customer: String, probe: ProbeProcess), in served: ServedWorld
    ) async throws {
        // Started once more, it has nothing to do.
        _ = try await app.probe.runToTheEnd()
        let truth = try #require(served.world.simulator.truth(of: app.customer))
        let bought = Set(truth.purchases.map(\.transactionID))
        #expect(bought.count == count)
        #expect(try app.probe.finished().isSuperset(of: bought))
        #expect(try app.probe.queued() == [])
        let orders = try await served.server.orders(of: app.customer).orders
        #expect(orders.map(\.state) == Array(repeating: .paid, count: count))
        #expect(Set(orders.compactMap(\.transactionID)) == bought)
        #expect(orders.allSatisfy { $0.deliveryIDs?.count == 1 })
        #expect(Set(orders.compactMap(\.deliveryIDs).joined()).count == count)
        try app.probe.forget()
    }
}

extension ServedWorld {
    /// A new customer of the simulator, and an app that buys coins for it.
    fileprivate func app(
        buying purchases: Int, by route: ClientKillTests.Route
    ) throws -> (customer: String, probe: ProbeProcess) {
        let customer = world.simulator.createCustomer(CustomerScript()).customer
        let probe = try ProbeProcess(
            buying: purchases, as: customer, in: world, at: address, secret, isDevice: route == .device)
        return (customer, probe)
    }
}
