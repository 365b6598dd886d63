import Foundation
import SeededRandom
import Subscriptions
import Testing

@testable import Tracking

/// Customers who upload anything in any order and come back after any time, while workers are killed and Apple fails.
@Suite("Every paying subscription is checked, whatever was uploaded in whatever order")
struct CoverageSimulationTests {
    private static let steps = 24
    private static let stepsBetweenChecks = 6

    @Test("A few random lives stay covered", .timeLimit(.minutes(3)))
    func aFewLives() async throws {
        // In 1,339 a refusal of a lost lease comes before an equal answer, which does not take it back. In 1,508 a receipt
        // is handed back unasked after another one brought its check forward, and is leased again.
        try await walk(seeds: Array(1...8) + [1_339, 1_508])
    }

    @Test(
        "Two thousand random lives stay covered", .timeLimit(.minutes(180)),
        .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"))
    func twoThousandLives() async throws {
        try await walk(seeds: Array(1_000...2_999))
    }

    /// Repeats the lives of a failure: `PERENNIAL_TEST_SEEDS=1339,1426 scripts/test --filter chosenLives`.
    @Test("Chosen lives stay covered", .enabled(if: !chosenSeeds.isEmpty, "PERENNIAL_TEST_SEEDS names seeds"))
    func chosenLives() async throws {
        for seed in Self.chosenSeeds { _ = try await withLedger(connections: 4) { try await walk($0, seed: seed) } }
    }

    private static let chosenSeeds = (ProcessInfo.processInfo.environment["PERENNIAL_TEST_SEEDS"] ?? "")
        .split(separator: ",").compactMap { UInt64($0) }

    private func walk(seeds: [UInt64]) async throws {
        var (running, ended) = (0, 0)
        for seed in seeds {
            print("coverage: seed \(seed)")
            let compared = try await withLedger(connections: 4) { try await walk($0, seed: seed) }
            running += compared.running
            ended += compared.ended
        }
        print("coverage: \(running) subscriptions run, \(ended) do not")
        #expect(running > 0 && ended > 0, "one of the two was never compared; this test would prove little")
    }

    private func walk(_ test: TestLedger, seed: UInt64) async throws -> CoverageWalk.Compared {
        var walk = try await CoverageWalk(test, seed: seed)
        for number in 1...Self.steps {
            do {
                try await walk.step()
                try await walk.expectNoClockFell()
            } catch  where !(error is CoverageWalk.Broken) {
                throw CoverageWalk.Broken(description: "\(walk): \(error)")
            }
            if number % Self.stepsBetweenChecks == 0 { try await walk.check() }
        }
        return try await walk.end()
    }
}
