import ArgumentParser
import Foundation
import Postgres

/// How long receipts of a killed worker wait for another one.
struct TakeoverBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "takeover", abstract: "Kills a worker that holds receipts: how long until another has them all.")

    @Option(help: "Seconds of a lease.")
    var lease = 10

    func run() async throws { try await World.with(measure) }

    /// What one worker can hold. The store answers late, but well within the half lease that a check may take.
    private static let receipts = 384

    private func measure(_ world: World) async throws {
        try await world.startSimulator(customers: Self.receipts, arguments: ["--latency-ms", "3000"])
        try await world.run(["import", try await world.saveReceipts().path])
        let options = ["worker", "--lease-seconds", "\(lease)"]
        try world.start("first worker", options)
        while try await held(world) < Self.receipts { try await Task.sleep(for: .milliseconds(50)) }
        let holders = try await newestLease(world)
        try world.start("second worker", options)
        world.kill("first worker")
        let start = ContinuousClock.now
        while try await held(world, before: holders) > 0 { try await Task.sleep(for: .milliseconds(20)) }
        let elapsed = (ContinuousClock.now - start).components
        world.stop("second worker")
        let seconds = Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
        print("taken over within \(seconds.shown) s of the kill, with a lease of \(lease) s")
    }

    /// Receipts that a worker holds under a lease given until `token`.
    private func held(_ world: World, before token: Int64 = .max) async throws -> Int64 {
        try await world.number(
            "SELECT count(*) AS number FROM ledger.poll_schedule WHERE leased_by IS NOT NULL AND lease_token <= \(token)"
        )
    }

    private func newestLease(_ world: World) async throws -> Int64 {
        try await world.number("SELECT max(lease_token) AS number FROM ledger.poll_schedule")
    }
}
