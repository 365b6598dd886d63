import ArgumentParser
import Foundation
import Ledger
import Postgres
import Subscriptions

/// Renewals settled and summarised with the partial indexes of the overview, and without them.
struct RenewalBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renewals",
        abstract: "Settles and summarises renewals with and without the indexes that the overview of today reads.")

    @Option(help: "Subscriptions; half of them renew with the indexes, half without them.")
    var subscriptions = 4_000

    @Option(help: "Rounds, each with one renewal of every subscription; the median counts.")
    var rounds = 7

    /// What the overview of today, the gauges of failing charges and nothing else read.
    private static let ofSettlements = [
        "subscription_span_begins", "subscription_span_ends", "subscription_span_unpaid",
    ]
    private static let ofSummaries = ["summary_paying_begins", "summary_paying_ends"]

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        let ledger = try world.ledger(writeConnections: 1)
        var monthly = CatalogProduct(id: Renewals.product, kind: .autoRenewable, entitlements: ["pro"])
        (monthly.period, monthly.priceMilliunits, monthly.currency) = ("P1M", 4_990, "USD")
        try await ledger.apps.applyCatalog([monthly], to: World.app)
        let renewals = Renewals(
            ledger: ledger, world: world, worker: try await ledger.claims.startWorker(host: "benchmark", process: 1))
        try await renewals.upload(subscriptions)
        let makes = try await definitions(Self.ofSettlements + Self.ofSummaries, world)
        var settled: [[Double]] = [[], []]
        var summarised: [[Double]] = [[], []]
        for round in 0...rounds {
            for turn in [round % 2, 1 - round % 2] {
                // The halves change places, so that neither has what the other made.
                if turn == 1 { try await drop(world) }
                let half = (round + turn) % 2
                let settling = try await renewals.settle(round: round, half: half)
                let summarising = try await renewals.summarise()
                if turn == 1 { try await world.sql(makes.joined(separator: ";\n")) }
                guard round > 0 else { continue }
                settled[turn].append(settling)
                summarised[turn].append(summarising)
            }
            if round == 0 { try world.psql([world.connectionString, "--quiet", "--command=VACUUM ANALYZE"]) }
        }
        print(line("settlement of a renewal", settled))
        print(line("summary of a renewal", summarised))
    }

    private func drop(_ world: World) async throws {
        let names = (Self.ofSettlements + Self.ofSummaries).map { "ledger.\($0)" }
        try await world.sql("DROP INDEX \(names.joined(separator: ", "))")
    }

    private func definitions(_ names: [String], _ world: World) async throws -> [String] {
        let statement = Statement(
            name: "definitions",
            sql: "SELECT pg_get_indexdef(('ledger.' || n)::regclass) AS definition FROM unnest($1::text[]) n")
        return try await world.database.query(statement, [.texts(names)]).map { try $0.text("definition") }
    }

    private func line(_ name: String, _ seconds: [[Double]]) -> String {
        let ratios = zip(seconds[0], seconds[1]).map { $0 / $1 }.sorted()
        let each = seconds.map { Int(Self.median($0) / Double(subscriptions / 2) * 1_000_000) }
        let spread = "\((ratios.first ?? 0).shown) to \((ratios.last ?? 0).shown)"
        return
            "\(name): \(each[0]) µs with the indexes, \(each[1]) µs without; ratio \(Self.median(ratios).shown) (\(spread))"
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}
