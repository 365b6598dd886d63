import AppStoreSimulator
import Foundation
import Postgres
import SeededRandom
import Testing
import Tracking

/// A server that stores notifications and a worker that asks about them, both killed for real again and again.
@Suite("Killed between storing a notification and asking, no question is lost")
struct NotificationKillTests {
    private static let rounds = 8

    @Test("The story is true, no notification waits, and a rebuild finds nothing", .timeLimit(.minutes(3)))
    func killed() async throws {
        try await PretendWorld.with(seed: 20_261_132, customers: 48, sandboxCustomers: 4, monthSeconds: 10) { world in
            var random = Seeded(seed: 20_261_132)
            let token = try await world.tracker.ledger.apps.openNotifications(of: world.bundleID)
            var waited = 0
            for _ in 1...Self.rounds {
                let server = try world.trusting(["serve"])
                let address = try #require(try await server.address(), "\(server.said)")
                world.simulator.notify(NotificationOptions(url: "\(address)/v1/notifications/\(token.text)"))
                let worker = try world.trusting(["worker"])
                try await Task.sleep(for: .milliseconds(Int.random(in: 400...1_600, using: &random)))
                for process in [server, worker].shuffled(using: &random) {
                    process.kill()
                    _ = await process.end()
                }
                waited += try await world.waiting() > 0 ? 1 : 0
                for process in [server, worker] { try process.forget() }
            }
            print("rounds that left questions: \(waited) of \(Self.rounds)")
            try await world.askEverything()
            world.clock.stop()
            try await world.checkEverything()
            let applied = try await world.number("SELECT count(*) FROM ledger.notification WHERE effect = 'applied'")
            #expect(waited > 0 && applied > 20, "this would prove little: \(applied) were applied")
            try await AgreementTests.expectAgreement(in: world, renewalsMin: 20)
            let rebuilt = try await world.rebuild(correcting: false)
            #expect(rebuilt.differences == [])
            try await world.expectNoViolations()
        }
    }
}

extension PretendWorld {
    /// The real executable as a process that trusts the simulator's signatures.
    func trusting(_ arguments: [String]) throws -> PerennialProcess {
        let root = FileManager.default.temporaryDirectory.appending(path: "root-\(UUID()).pem")
        try Data(try simulator.signingAuthority().rootPEM.utf8).write(to: root)
        return try PerennialProcess(
            arguments, in: self,
            further: ["PERENNIAL_APPSTORE_ROOT_FILE": root.path, "PERENNIAL_LEASE_SECONDS": "2"])
    }

    /// How many notifications wait for an answer.
    fileprivate func waiting() async throws -> Int64 {
        try await number("SELECT count(*) FROM ledger.notification WHERE effect = 'asked'")
    }

    /// Runs a worker until no notification waits.
    fileprivate func askEverything() async throws {
        try await work(seconds: 6)
        while try await waiting() > 0 { try await work(seconds: 1) }
    }
}
