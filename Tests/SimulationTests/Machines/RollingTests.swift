import AppStoreSimulator
import Foundation
import Subscriptions
import TestSupport
import Testing
import Tracking

/// Workers replaced one after the other while there is work: nothing is lost, and nothing that has an answer is asked about
/// again before its time.
@Suite(
    "Workers are replaced one after the other",
    .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"))
struct RollingTests {
    /// A call that began before a worker had to stop has five seconds; the claim itself may take some of them.
    private static let patienceSecondsMin = 4.5

    @Test("Workers that are replaced while they work lose no answer and ask nothing twice", .timeLimit(.minutes(3)))
    func workersAreReplacedWhileTheyWork() async throws {
        var simulated = SimulatorOptions(seed: 20_261_125)
        (simulated.customers, simulated.sandboxCustomers) = (5_000, 0)
        (simulated.monthSeconds, simulated.standsStill, simulated.latencyMilliseconds) = (30 * 86_400, true, 800)
        let options = simulated
        try await withTestDatabase { _, connectionString in
            try await PretendWorld.with(options, leaseSeconds: 60, connectionString: connectionString) { world in
                let receipts = world.simulator.receipts().count
                try await ClaimJournal.begin(in: world)
                let replaced = try await Self.replaceWorkers(in: world, until: receipts)
                #expect(replaced >= 2, "all receipts were checked before a worker was replaced")
                let stored = try await world.tracker.ledger.customers.receipts(limit: 100_000)
                #expect(stored.count == receipts)
                #expect(stored.count { $0.askedAt == nil } == 0, "an answer was lost")
                let journal = try await ClaimJournal(of: world)
                print("rolling: \(replaced) workers replaced, \(world.simulator.callCount) calls, \(journal)")
                Self.judge(journal, receipts: receipts, calls: world.simulator.callCount)
                try await world.expectNoViolations()
            }
        }
    }

    /// Every call belongs to a claim whose end is known: nothing that was answered is asked about twice.
    private static func judge(_ journal: ClaimJournal, receipts: Int, calls: Int) {
        #expect(journal.tooEarly == 0, "asked again although the answer was settled")
        #expect(journal[.settled] == receipts + journal.dueAgain)
        #expect(journal[.leaseOver] == 0, "a worker that stopped left receipts behind")
        #expect(journal[.open] == 0, "a worker that stopped holds receipts")
        let unanswered = calls - journal[.settled]
        #expect((0...journal[.handedBack]).contains(unanswered), "answers of \(unanswered) calls were dropped")
        #expect(
            journal.handedBackAfterSeconds ?? .infinity >= patienceSecondsMin, "given up too soon, or begun too late")
    }

    /// Stops a worker again and again, each time after its successor began, until everything was asked; answers how often.
    private static func replaceWorkers(in world: PretendWorld, until calls: Int) async throws -> Int {
        var workers = try (0..<2).map { _ in try worker(in: world) }
        var replaced = 0
        while world.simulator.callCount < calls {
            try await Task.sleep(for: .milliseconds(900))
            workers.append(try worker(in: world))
            try await stop(workers.removeFirst())
            replaced += 1
        }
        for worker in workers { try await stop(worker) }
        // What the last ones handed back has to be asked about as well.
        let last = try worker(in: world)
        while try await world.tracker.ledger.claims.due(limit: 1).contains(where: { $0.receipts > 0 }) {
            try await Task.sleep(for: .milliseconds(200))
        }
        while !last.said.contains("worker started") { try await Task.sleep(for: .milliseconds(50)) }
        try await stop(last)
        return replaced
    }

    private static func stop(_ worker: PerennialProcess) async throws {
        #expect(await worker.stop() == 0, "\(worker.said)")
        try worker.forget()
    }

    private static func worker(in world: PretendWorld) throws -> PerennialProcess {
        try PerennialProcess(["worker"], in: world, further: ["PERENNIAL_LEASE_SECONDS": "60"])
    }
}
