import ArgumentParser
import FoundationEssentials

/// The full loop beside its two ceilings.
struct LoopBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "loop",
        abstract: "Checks unchanged receipts: the HTTP client alone, the database alone, and the worker.")

    @Option(help: "Receipts that are due.")
    var receipts = 200_000

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        try await world.startSimulator(customers: receipts)
        let file = try await world.saveReceipts()
        try await world.run(["import", file.path])
        try await report("first sight", world) { try await checkAll(world) }
        // The second answer is about the newest receipt and differs once from the first.
        try await checkEverythingOnce(world)
        let http = try await report("HTTP client alone", world) { try await HTTPCeiling(world: world).ask(receipts) }
        try await world.makeEverythingDue()
        let database = try await report("database alone", world) { try await DatabaseCeiling(world: world).work() }
        try await world.makeEverythingDue()
        let loop = try await report("full loop", world) { try await checkAll(world) }
        print("full loop over HTTP client alone: \((loop.rate / http.rate).shown)")
        print("full loop over database alone: \((loop.rate / database.rate).shown)")
        print("worker and PostgreSQL, each check: \(Int(loop.microseconds(in: "benchmark", "postgres"))) µs")
    }

    @discardableResult
    private func report(
        _ name: String, _ world: World, _ work: () async throws -> Int
    ) async throws -> Measurement {
        let measurement = try await world.measured(work)
        print(measurement.line(name))
        return measurement
    }

    private func checkAll(_ world: World) async throws -> Int {
        let due = try await world.scheduledReceipts()
        try await world.run(["worker", "--once"])
        return due
    }

    private func checkEverythingOnce(_ world: World) async throws {
        try await world.makeEverythingDue()
        _ = try await checkAll(world)
    }
}
