import AppStoreSimulator
import Foundation
import Postgres
import TestSupport
import Testing
import Tracking

/// A worker while a migration that takes something away comes over it.
@Suite("A running worker stops when a migration makes it too old")
struct OutdatedWorkerTests {
    @Test(
        "A worker whose schema becomes too new finishes what it holds and ends with status 1", .timeLimit(.minutes(2)))
    func theSchemaBecomesTooNew() async throws {
        var simulated = SimulatorOptions(seed: 20_261_121)
        (simulated.customers, simulated.sandboxCustomers) = (1_000, 0)
        (simulated.monthSeconds, simulated.standsStill, simulated.latencyMilliseconds) = (30 * 86_400, true, 700)
        let options = simulated
        try await withTestDatabase { _, connectionString in
            try await PretendWorld.with(options, leaseSeconds: 60, connectionString: connectionString) { world in
                try await ClaimJournal.begin(in: world)
                // Slow enough that something is left, and something is under way, whenever the worker learns of it.
                try await world.run("UPDATE ledger.app_budget SET rate = 50, burst = 50, tokens = 0")
                let worker = try PerennialProcess(["worker"], in: world, further: ["PERENNIAL_LEASE_SECONDS": "60"])
                while world.simulator.callCount < 20 { try await Task.sleep(for: .milliseconds(50)) }
                try await world.run(
                    """
                    INSERT INTO ledger.migration (name, digest) VALUES ('9999_newer', '\\x00');
                    UPDATE ledger.compatibility SET program_min = 9999
                    """)
                #expect(await worker.end() == 1)
                #expect(worker.said.contains("run a newer perennial"), "\(worker.said)")
                #expect(worker.said.contains("worker stopped"), "\(worker.said)")
                try worker.forget()
                let journal = try await ClaimJournal(of: world)
                print("outdated: \(journal)")
                #expect(journal[.open] == 0 && journal[.handedBack] == 0 && journal[.leaseOver] == 0)
                #expect(journal[.settled] == world.simulator.callCount)
                #expect(journal[.settled] < world.simulator.receipts().count, "it went on claiming")
                try await world.expectNoViolations()
                // A worker that starts now is refused at once.
                let next = try PerennialProcess(["worker"], in: world)
                #expect(await next.end() == 1)
                #expect(next.said.contains("run a newer perennial"), "\(next.said)")
                try next.forget()
            }
        }
    }
}
