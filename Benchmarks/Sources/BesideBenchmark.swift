import ArgumentParser
import Foundation

/// The same checks in a small ledger and in a large one.
struct BesideBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "beside",
        abstract: "Checks unchanged receipts beside a hundred thousand others and beside millions, in turns.")

    /// Receipts that are stored and not due in the small ledger.
    private static let fewOthers = 100_000

    @Option(help: "Receipts that are due.")
    var receipts = 50_000

    @Option(help: "Receipts that are stored and not due in the large ledger.")
    var others = 10_000_000

    @Option(help: "Measurements of each.")
    var rounds = 3

    @Option(help: "Where to make a file when all is filled, and wait until it is gone.")
    var pauseFile: String?

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        try await world.startSimulator(customers: receipts)
        try await world.run(["import", try await world.saveReceipts().path])
        for _ in 0..<2 {
            // The second answer is about the newest receipt and differs once from the first.
            try await world.makeEverythingDue()
            try await world.run(["worker", "--once"])
        }
        let own = try await world.number("SELECT max(receipt_id) AS number FROM ledger.receipt")
        let large = try await world.copy(named: "large")
        for (ledger, others) in [(world, Self.fewOthers), (large, others)] {
            let start = ContinuousClock.now
            try await ledger.store(others: others)
            print(
                "\(others) others stored in \((ContinuousClock.now - start).components.seconds) s: "
                    + "\(try await ledger.number("SELECT pg_database_size(current_database()) >> 20 AS number")) MB")
        }
        try await pause()
        var rates: [[Double]] = [[], []]
        for round in 0...rounds {
            for (place, ledger) in [world, large].enumerated() {
                try await ledger.makeEverythingDue(upTo: own)
                let due = try await ledger.scheduledReceipts(upTo: own)
                let checked = try await ledger.measured {
                    try await ledger.run(["worker", "--once"])
                    return due
                }
                print(checked.line("\(place == 0 ? "few" : "many") others\(round == 0 ? ", not counted" : "")"))
                if round > 0 { rates[place].append(checked.rate) }
            }
        }
        print(
            "full loop beside \(others) others over beside \(Self.fewOthers): "
                + (Self.median(rates[1]) / Self.median(rates[0])).shown)
        let memory = [try await memory(world, own), try await memory(large, own)]
        print(
            "memory of a worker at its highest: \(memory[0].shown) MB and \(memory[1].shown) MB, "
                + "ratio \((memory[1] / memory[0]).shown)")
        let status = [try await status(world), try await status(large)]
        print("perennial status: \(status[0].shown) s and \(status[1].shown) s")
    }

    /// Writes the pause file, where one is named, and waits until another program removes it to say that the machine is
    /// quiet.
    private func pause() async throws {
        guard let pauseFile else { return }
        try Data().write(to: URL(filePath: pauseFile))
        while FileManager.default.fileExists(atPath: pauseFile) { try await Task.sleep(for: .milliseconds(200)) }
    }

    /// The most memory that a worker holds while it checks everything, in megabytes.
    private func memory(_ world: World, _ own: Int64) async throws -> Double {
        try await world.makeEverythingDue(upTo: own)
        try world.start("worker", ["worker"])
        let due = "SELECT count(*) AS number FROM ledger.poll_schedule WHERE receipt_id <= \(own) AND due_at <= now()"
        repeat { try await Task.sleep(for: .seconds(1)) } while try await world.number(due) > 0
        let peak = world.peakMegabytes("worker") ?? 0
        world.stop("worker")
        return peak
    }

    /// The median time of a look at the whole, in seconds, starting the command included.
    private func status(_ world: World) async throws -> Double {
        var seconds: [Double] = []
        for _ in 0..<5 {
            seconds.append(try await world.measured { try await world.run(["status"]).count }.seconds)
        }
        return Self.median(seconds)
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}
