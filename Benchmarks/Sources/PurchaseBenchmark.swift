import ArgumentParser
import Foundation
import Postgres
import Subscriptions
import Tracking

/// Orders, deliveries and the settlements that make them, beside single-row inserts by pgbench.
struct PurchaseBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purchases",
        abstract: "Places orders, acknowledges and reads deliveries, and settles purchases that give one.")

    @Option(help: "Orders that are placed in each round, and rows that pgbench inserts.")
    var orders = 20_000

    @Option(help: "Due deliveries of the small queue.")
    var few = 10_000

    @Option(help: "Due deliveries of the large queue.")
    var many = 1_000_000

    @Option(help: "Deliveries that are acknowledged in each round.")
    var acknowledged = 100_000

    @Option(help: "Receipts that are settled in each round, with and without deliveries.")
    var receipts = 2_000

    @Option(help: "Reads of each queue.")
    var reads = 2_000

    @Option(help: "Rounds; the median counts.")
    var rounds = 5

    @Option(help: "Clients of pgbench at a time.")
    var clients = 8

    @Option(help: "Callers at a time, which place orders and acknowledge deliveries.")
    var callers = 64

    @Option(help: "Connections for transactions.")
    var connections = 8

    /// Deliveries of one acknowledgement, and of one read of the queue.
    private static let page = 100
    private static let delivered: ProductID = "com.example.tracker.themes"
    private static let kept: ProductID = "com.example.tracker.frames"

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        let ledger = try world.ledger(writeConnections: connections)
        try await ledger.apps.applyCatalog(
            [
                CatalogProduct(id: Self.delivered, kind: .nonConsumable, entitlements: ["looks"]),
                CatalogProduct(id: Self.kept, entitlements: ["looks"]),
            ], to: World.app)
        let worker = try await ledger.claims.startWorker(host: "benchmark", process: 1)
        try await settlements(FirstSight(ledger: ledger, worker: worker), world)
        try await ledger.deliveries.place()
        let load = OrderLoad(ledger: ledger, callers: callers)
        let reads = try await [read(load, few, world), read(load, many, world)]
        print("queue of \(many) over queue of \(few): \((reads[1] / reads[0]).shown)")
        try await writes(world, load)
    }

    /// Alternates settlements with and without deliveries, the first of each not counted. After these the tables are
    /// analysed, as autovacuum does within minutes: sessions plan for empty tables before.
    private func settlements(_ sight: FirstSight, _ world: World) async throws {
        var seconds: [[Double]] = [[], []]
        for round in 0...rounds {
            for turn in [round % 2, 1 - round % 2] {
                let taken = try await sight.seconds(
                    of: receipts, buying: turn == 0 ? Self.kept : Self.delivered, round: 2 * round + turn)
                if round > 0 { seconds[turn].append(taken) }
            }
            if round == 0 { try world.psql([world.connectionString, "--quiet", "--command=VACUUM ANALYZE"]) }
        }
        let each = seconds.map { Self.median($0) / Double(receipts) * 1_000_000 }
        print("settlement of a purchase: \(Int(each[0])) µs without delivery, \(Int(each[1])) µs with one")
        print("settlement with deliveries over without: \((each[1] / each[0]).shown)")
    }

    /// Fills the queue up to so many due deliveries; returns the median of reads in seconds.
    private func read(_ load: OrderLoad, _ deliveries: Int, _ world: World) async throws -> Double {
        let due = Int(try await world.number("SELECT count(*) AS number FROM ledger.due_delivery"))
        let file = try World.value("BENCHMARKS") + "/lib/fill_deliveries.sql"
        try world.psql([
            world.connectionString, "--set=first=\(due + 1)", "--set=last=\(max(deliveries, due + 1))",
            "--set=app=\(World.app)", "--set=product=\(Self.delivered)", "--file=\(file)",
        ])
        let last = try await world.number("SELECT position AS number FROM ledger.delivery_queue")
        _ = try await load.read(reads / 10, of: Self.page, upTo: last)
        let seconds = try await load.read(reads, of: Self.page, upTo: last).sorted()
        let times = [0.5, 0.99].map { (seconds[Int($0 * Double(seconds.count))] * 1_000).shown }
        print("read of \(Self.page) of \(last) due: p50 \(times[0]) ms, p99 \(times[1]) ms")
        return Self.median(seconds)
    }

    /// Alternates inserts by pgbench, orders and acknowledgements.
    private func writes(_ world: World, _ load: OrderLoad) async throws {
        let ceiling = InsertCeiling(world: world)
        try await ceiling.prepare()
        var due = try await dueDeliveries(world).makeIterator()
        var ratios: [[Double]] = [[], []]
        for round in 0...rounds {
            let name = round == 0 ? ", not counted" : ""
            let inserts = try await world.measured { try ceiling.insert(orders, clients: clients) }
            print(inserts.line("single-row inserts\(name)"))
            let placed = try await world.measured {
                try await load.place(orders, of: Self.delivered, round: round)
            }
            print(placed.line("orders placed\(name)"))
            let ids = (0..<acknowledged).compactMap { _ in due.next() }
            let done = try await world.measured { try await load.acknowledge(ids, inBatchesOf: Self.page) }
            print(done.line("deliveries acknowledged\(name)"))
            guard done.count == acknowledged else { throw OrderLoad.TooFew(deliveries: done.count) }
            if round > 0 {
                ratios[0].append(placed.rate / inserts.rate)
                ratios[1].append(done.rate / inserts.rate)
            }
        }
        print("orders over single-row inserts: \(Self.spread(ratios[0]))")
        print("acknowledged deliveries over single-row inserts: \(Self.spread(ratios[1]))")
    }

    private func dueDeliveries(_ world: World) async throws -> [Int64] {
        try await world.database.query(
            Statement(
                name: "due",
                sql: "SELECT delivery_id FROM ledger.due_delivery ORDER BY position LIMIT $1::int"),
            [.int4(Int32(acknowledged * (rounds + 1)))]
        ).map { try $0.int8("delivery_id") }
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    private static func spread(_ values: [Double]) -> String {
        "\(median(values).shown) (\((values.min() ?? 0).shown) to \((values.max() ?? 0).shown))"
    }
}
