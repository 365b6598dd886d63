import AppStoreSimulator
import Foundation
import Ledger
import Subscriptions
import TestSupport
import Testing
import Tracking

/// Workers replaced one after the other while there is work: nothing is lost, and no more is asked about twice
/// than they hand back.
@Suite(
    .serialized,
    .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"))
struct RollingTests {
    @Test(.timeLimit(.minutes(3)))
    func workersAreReplacedWhileTheyWork() async throws {
        var simulated = SimulatorOptions(seed: 20_261_125)
        (simulated.customers, simulated.sandboxCustomers) = (5_000, 0)
        (simulated.monthSeconds, simulated.standsStill, simulated.latencyMilliseconds) = (30 * 86_400, true, 800)
        let options = simulated
        try await withTestDatabase { _, connectionString in
            try await PretendWorld.with(options, leaseSeconds: 60, connectionString: connectionString) { world in
                let receipts = world.simulator.receipts().count
                var workers = try (0..<2).map { _ in try Self.worker(in: world) }
                var calls: [Int] = []
                while world.simulator.callCount < receipts {
                    try await Task.sleep(for: .milliseconds(900))
                    calls.append(world.simulator.callCount)
                    // The new one begins before the old one ends, as in a rolling restart.
                    workers.append(try Self.worker(in: world))
                    let old = workers.removeFirst()
                    #expect(old.stop() == 0, "\(old.said)")
                    try old.forget()
                }
                for worker in workers {
                    #expect(worker.stop() == 0, "\(worker.said)")
                    try worker.forget()
                }
                #expect(calls.count >= 3, "everything was asked before anybody was replaced: \(calls)")
                // Whoever is stopped hands back what has no answer after five seconds: at most what it had in the air.
                let again = world.simulator.callCount - receipts
                #expect(again <= calls.count * Worker.callsMax, "\(again) were asked about twice")
                print("rolling: \(again) receipts were handed back and asked about again")
                let stored = try await world.tracker.ledger.receipts(limit: 100_000)
                #expect(stored.count == receipts)
                #expect(stored.filter { $0.askedAt == nil }.count == 0, "an answer was lost")
                print("rolling: \(calls.count) workers replaced, \(receipts) receipts, calls \(calls)")
            }
        }
    }

    private static func worker(in world: PretendWorld) throws -> PerennialProcess {
        try PerennialProcess(["worker"], in: world, further: ["PERENNIAL_LEASE_SECONDS": "60"])
    }
}
