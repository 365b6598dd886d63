import AppStoreSimulator
import Foundation
import Testing

/// Purchases over HTTP, with the App Store, server, worker and database as processes of their own. In each round the
/// client, the server, a worker or the database is killed at a drawn step, and what was delivered must be what the App
/// Store knows.
@Suite("Whatever is killed, each purchase is delivered exactly once", .serialized)
struct ExactlyOnceTests {
    /// How many customers buy at once.
    static let roundsAtOnce = 20

    @Test("A few rounds, each with a kill, deliver everything exactly once", .timeLimit(.minutes(5)))
    func fewRounds() async throws {
        try await rounds(24, seed: 20_261_124)
    }

    @Test(
        "200 rounds, each with a kill, deliver everything exactly once", .timeLimit(.minutes(20)),
        .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"),
        arguments: [1, 2] as [UInt64])
    func manyRounds(seed: UInt64) async throws {
        try await rounds(200, seed: seed)
    }

    private func rounds(_ count: Int, seed: UInt64) async throws {
        print("simulation seed \(seed), purchases: seed \(seed), \(count) rounds")
        let begin = ContinuousClock.now
        try await ShopWorld.with(seed: seed) { world in
            let consumer = Task { await ShopConsumer(world: world).run() }
            defer { consumer.cancel() }
            let ended = try await play(count, seed: seed, in: world)
            let kills = await world.kills.done
            print("purchases: \(kills.count) kills, \(ContinuousClock.now - begin), \(Self.summary(of: kills))")
            #expect(await world.kills.left.isEmpty, "rounds of seed \(seed) had no kill")
            try await DeliveryReckoning(world).expectAgreement(with: ended, seed: seed)
            for command in [["verify"], ["rebuild", "--verify"]] {
                let found = try await world.machines.run(command)
                #expect(found.status == 0, "seed \(seed), perennial \(command): \(found.said)")
            }
        }
    }

    /// Plays all rounds, some at once.
    private func play(
        _ count: Int, seed: UInt64, in world: ShopWorld
    ) async throws -> [(plan: RoundPlan, truth: CustomerTruth)] {
        try await withThrowingTaskGroup(of: (plan: RoundPlan, truth: CustomerTruth).self) { group in
            var ended: [(plan: RoundPlan, truth: CustomerTruth)] = []
            for number in 0..<count {
                if number >= Self.roundsAtOnce, let one = try await group.next() { ended.append(one) }
                group.addTask { try await Self.play(RoundPlan(number: number, seed: seed), in: world) }
            }
            for try await one in group { ended.append(one) }
            return ended
        }
    }

    private static func play(
        _ plan: RoundPlan, in world: ShopWorld
    ) async throws -> (plan: RoundPlan, truth: CustomerTruth) {
        let round = try await PurchaseRound(plan, in: world)
        do {
            try await round.run()
        } catch let slow as PurchaseRound.TooSlow {
            // What differs is reported with all other rounds.
            Issue.record("\(slow)")
        }
        return (plan, try await round.truth())
    }

    private static func summary(of kills: [Kill]) -> String {
        Dictionary(grouping: kills) { "\($0.victim) at \($0.step)" }
            .map { "\($0.key): \($0.value.count)" }.sorted().joined(separator: ", ")
    }
}
