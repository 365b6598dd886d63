import AppStoreSimulator
import Foundation
import SeededRandom
import Subscriptions
import TestSupport
import Testing

/// Workers are killed, the database restarts, and Apple is away or answers badly. Afterwards the ledger and the
/// simulator must agree, and no customer who had paid may have been refused in between.
@Suite("Workers, database and Apple fail at once", .serialized)
struct StormTests {
    @Test("A short storm loses nothing, doubles nothing and refuses no paying customer", .timeLimit(.minutes(10)))
    func nothingIsLostDoubledOrRefused() async throws {
        try await storm(seed: 20_261_122, customers: 500, monthSeconds: 20, seconds: 30)
    }

    @Test(
        "A long storm loses nothing, doubles nothing and refuses no paying customer",
        .timeLimit(.minutes(20)),
        .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"),
        arguments: [1, 2, 3] as [UInt64])
    func aLongStorm(seed: UInt64) async throws {
        try await storm(seed: seed, customers: 2_000, monthSeconds: 30, seconds: 240)
    }

    private func storm(seed: UInt64, customers: Int, monthSeconds: Double, seconds: Double) async throws {
        try await StormWorld.with(seed: seed, customers: customers, monthSeconds: monthSeconds, leaseSeconds: 4) {
            storm in
            let simulator = storm.world.simulator
            for fault in try Fault.mixed(rate: 0.03, seconds: 1) { simulator.add(fault) }
            let (kills, sent) = try await weather(storm, seed: seed, seconds: seconds)
            simulator.clearFaults()
            // What the last worker held when it was killed is taken over.
            try await storm.world.work(seconds: Double(2 * storm.leaseSeconds))
            storm.world.clock.stop()
            await storm.uploadAgain()
            try await storm.world.checkEverything()
            let reckoning = try await Reckoning(storm.world)
            print("storm: \(kills) workers killed, \(sent) uploads, \(reckoning.summary)")
            reckoning.expectAgreement()
            reckoning.expectEveryChangeOnce()
            reckoning.expectNobodyRefused()
            try await storm.world.expectNoViolations()
            #expect(kills > Int(seconds / 10))
            #expect(reckoning.changes > customers, "the population hardly lived; this test would prove little")
        }
    }

    /// Lets it all happen; returns how many workers were killed and how many receipts devices sent.
    private func weather(_ storm: StormWorld, seed: UInt64, seconds: Double) async throws -> (kills: Int, sent: Int) {
        try await withThrowingTaskGroup(of: (kills: Int, sent: Int).self) { group in
            group.addTask {
                var random = Seeded(seed: seed)
                return (try await storm.keepKilling(every: 4, using: &random), 0)
            }
            group.addTask { (0, await storm.keepUploading(seed: seed)) }
            try await Task.sleep(for: .seconds(seconds * 0.3))
            try await storm.cluster.stop(immediate: true)
            try await Task.sleep(for: .seconds(1))
            try await storm.cluster.start()
            try await Task.sleep(for: .seconds(seconds * 0.3))
            var outage = Fault(.http)
            outage.untilMilliseconds = SimulatorClock.system.milliseconds() + 4_000
            storm.world.simulator.add(outage)
            try await Task.sleep(for: .seconds(seconds * 0.4))
            group.cancelAll()
            return try await group.reduce((0, 0)) { ($0.0 + $1.kills, $0.1 + $1.sent) }
        }
    }
}
