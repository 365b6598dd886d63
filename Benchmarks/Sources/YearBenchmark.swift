import ArgumentParser
import Foundation

/// How many calls the schedule needs in a year, and how soon news is known.
struct YearBenchmark: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "year",
        abstract: "Simulates a year of the schedule: calls, staleness, and a picture. Needs no database.")

    @Option(help: "Subscribers at any time, who are replaced when they leave.")
    var subscribers = 20_000

    @Option(help: "What the lives are drawn from.")
    var seed: UInt64 = 1

    @Option(help: "Where to draw the schedule.")
    var picture: String?

    func run() throws {
        print("seed \(seed), \(subscribers) subscribers, \(SimulatedYear.days) days")
        let years = SubscriberMix.all.map { SimulatedYear($0, subscribers: subscribers, seed: seed) }
        for year in years {
            print("\n\(year.report)")
            let notified = SimulatedYear(year.mix, subscribers: subscribers, seed: seed, isNotified: true)
            let part = (Double(notified.calls.all) / Double(year.calls.all) * 1000).rounded() / 1000
            print("calls with notifications over these, Apple lagging up to 5 minutes: \(part) (at most 1.6 is wished)")
        }
        guard let picture else { return }
        try ScheduleChart(years: years).svg.write(toFile: picture, atomically: true, encoding: .utf8)
    }
}
