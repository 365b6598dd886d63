import Foundation
import Subscriptions
import Testing
import Tracking

/// `perennial verify` as an operator runs it, and as a worker does in the background.
@Suite("`perennial verify` names violations and repairs them")
struct VerifyProcessTests {
    /// What the command prints as JSON.
    private struct Found: Decodable {
        struct One: Decodable {
            let check, detail, advice: String
            let bundle_id, environment, original_transaction_id, product_id: String?
            let receipt_id: String?
            let repaired: Bool
        }
        let checks: [String]
        let found, left, repaired: Int
        let violations: [One]
    }

    private func run(_ arguments: [String], in world: PretendWorld) async throws -> (status: Int32, said: String) {
        let process = try PerennialProcess(["verify"] + arguments, in: world)
        defer { withExtendedLifetime(process) {} }
        let status = await process.end()
        let said = process.said
        try process.forget()
        return (status, said)
    }

    @Test("A violation is named and repaired, and the status says what is left")
    func whatIsViolatedIsNamedRepairedAndWatched() async throws {
        let hour = 3_600.0
        try await PretendWorld.with(seed: 20_261_124, customers: 12, sandboxCustomers: 0, monthSeconds: hour) { world in
            try await world.work(seconds: 3)
            let sound = try await run([], in: world)
            #expect(sound.status == 0)
            #expect(sound.said.hasSuffix("No violation of \(Invariant.allCases.count) invariants.\n"), "\(sound.said)")

            // The whole schedule is lost, but for what was never asked.
            try await world.run(
                """
                DELETE FROM ledger.poll_schedule s USING ledger.receipt r
                WHERE r.receipt_id = s.receipt_id AND r.outcome = 'verified'
                """)
            let text = try await run(["--check", "coverage"], in: world)
            #expect(text.status == 2)
            let line = "its polling receipt is not scheduled. Run `perennial verify --repair`"
            #expect(text.said.contains(line), "\(text.said)")
            let found = try await run(["--format", "json"], in: world)
            // On a slow machine the command tells its progress before.
            let json = found.said.drop { $0 != "{" }
            let reported = try #require(
                try? JSONDecoder().decode(Found.self, from: Data(json.utf8)), "\(found.said)")
            #expect(
                found.status == 2 && reported.found > 5 && reported.left == reported.found && reported.repaired == 0)
            #expect(reported.checks == Invariant.allCases.map(\.rawValue).sorted())
            #expect(reported.violations.count == reported.found)
            #expect(reported.violations.allSatisfy { $0.check.hasSuffix("coverage") })
            #expect(
                reported.violations.allSatisfy {
                    $0.bundle_id == world.bundleID.text && $0.original_transaction_id != nil
                })

            let repaired = try await run(["--repair"], in: world)
            #expect(repaired.status == 0 && repaired.said.contains("It is repaired."), "\(repaired.said)")
            // One schedule row may cover several things.
            #expect(repaired.said.contains(", left: 0."), "\(repaired.said)")
            #expect(try await run([], in: world).status == 0)

            try await world.run("UPDATE ledger.subscription SET periods = periods + 1")
            let left = try await run(["--repair", "--check", "facts"], in: world)
            #expect(left.status == 2 && left.said.contains("perennial rebuild"), "\(left.said)")
            #expect(try await run(["--check", "nonsense"], in: world).status == 64)
        }
    }
}
