import ArgumentParser
import Foundation
import Subscriptions

/// Checks offered at a rate while each answer of Apple takes its time.
struct LatencyBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "latency",
        abstract: "Offers checks at a rate while every answer takes its time, and watches the memory.")

    @Option(help: "Checks a second that the app's rate allows.")
    var rate = 2_000

    @Option(help: "Milliseconds that each answer takes.")
    var latency = 100

    @Option(help: "Seconds that are counted.")
    var seconds = 20

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        try await world.startSimulator(customers: rate * (seconds + 10))
        try await world.run(["import", try await world.saveReceipts().path])
        for _ in 0..<2 {
            try await world.makeEverythingDue()
            try await world.run(["worker", "--once"])
        }
        try await world.delayAnswers(milliseconds: latency)
        try await world.run(["app", "set", World.app.text, "--rate", "\(rate)", "--burst", "\(rate / 10)"])
        try await world.makeEverythingDue()
        try world.start("worker", ["worker"])
        try await Task.sleep(for: .seconds(4))
        let measurement = try await world.measured {
            let before = try await checked(world)
            try await Task.sleep(for: .seconds(seconds))
            return try await checked(world) - before
        }
        let memory = world.peakMegabytes("worker")
        world.stop("worker")
        print(measurement.line("worker with \(latency) ms at the store"))
        print("achieved over offered: \((measurement.rate / Double(rate)).shown)")
        print("memory of the worker at its highest: \(Int(memory ?? 0)) MB")
    }

    /// Answers that were settled since everything was made due.
    private func checked(_ world: World) async throws -> Int {
        Int(
            try await world.number(
                "SELECT count(*) AS number FROM ledger.poll_schedule WHERE due_at > now() AND leased_by IS NULL"))
    }
}
