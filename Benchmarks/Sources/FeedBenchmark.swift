import ArgumentParser
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Postgres
import Subscriptions

/// How long after they were recorded events reach a consumer that waits for them over HTTP.
struct FeedBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feed",
        abstract: "Lets a worker see new receipts at a rate, and waits for their events over HTTP.")

    @Option(help: "Receipts a second that the app's rate allows; each brings two or three events.")
    var rate = 420

    @Option(help: "Seconds that are counted.")
    var seconds = 20

    private static let port = 8_192
    /// Seconds until the worker and the reader are at their pace.
    private static let warmUpSeconds = 4

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        try await world.startSimulator(customers: rate * (seconds + 2 * Self.warmUpSeconds))
        try await world.run(["import", try await world.saveReceipts().path])
        try await world.run(["app", "set", World.app.text, "--rate", "\(rate)", "--burst", "\(rate / 10)"])
        let key =
            try await world.run(["key", "create", "--scope", "read", "--rate", "0"]).split(separator: "\n").last ?? ""
        try world.start("server", ["serve", "--http-port", "\(Self.port)"])
        try world.start("worker", ["worker"])
        try await Task.sleep(for: .seconds(Self.warmUpSeconds))
        let received = try await FeedReader(port: Self.port, key: String(key)).events(seconds: Double(seconds))
        world.stop("worker")
        let committed = try await commits(world)
        print(line("events, from recorded to received", received.map { $0.at - $0.recorded }))
        print(
            line("events, from committed to received", received.map { $0.at - (committed[$0.position] ?? $0.recorded) })
        )
    }

    /// When each event was committed, by its position: the cluster of the benchmarks keeps that.
    private func commits(_ world: World) async throws -> [Int64: Double] {
        let rows = try await world.database.query(
            Statement(
                name: "commits",
                sql: """
                    SELECT f.position, extract(epoch FROM pg_xact_commit_timestamp(e.xmin))::float8 AS committed
                    FROM ledger.event_feed f JOIN ledger.event e USING (event_id)
                    """))
        return try rows.reduce(into: [:]) { $0[try $1.int8("position")] = try $1.float8("committed") }
    }

    private func line(_ name: String, _ seconds: [Double]) -> String {
        LoadResult(latencies: seconds.map { Int64($0 * 1_000_000_000) }.sorted(), seconds: Double(self.seconds)).line(
            name)
    }
}

/// Reads the feed as a consumer does, by long poll.
struct FeedReader {
    let port: Int
    let key: String

    private struct Page: Decodable {
        struct Event: Decodable {
            let position: Int64
            let recordedAt: String
            let subscription: String?

            private enum CodingKeys: String, CodingKey {
                case position
                case subscription = "original_transaction_id"
                case recordedAt = "recorded_at"
            }
        }

        let events: [Event]
        let position: Int64
    }

    /// An event as it arrived; instants in seconds since 1970.
    struct Received {
        let position: Int64
        let recorded: Double
        let at: Double
        /// Apple's id of the subscription or purchase.
        let subscription: String
    }

    /// What arrived within some seconds, once what is old was read.
    func events(seconds: Double) async throws -> [Received] {
        var position: Int64 = 0
        while case let page = try await page(after: position, waitSeconds: 0), !page.events.isEmpty {
            position = page.position
        }
        var received: [Received] = []
        let end = ContinuousClock.now + .seconds(seconds)
        while ContinuousClock.now < end {
            let page = try await page(after: position, waitSeconds: 5)
            let now = Date.now.timeIntervalSince1970
            position = page.position
            received += try page.events.map { event in
                let recorded = try Date(event.recordedAt, strategy: Self.instants).timeIntervalSince1970
                return Received(
                    position: event.position, recorded: recorded, at: now, subscription: event.subscription ?? "")
            }
        }
        return received
    }

    private static let instants = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    private func page(after position: Int64, waitSeconds: Int) async throws -> Page {
        var request = HTTPClientRequest(
            url: "http://127.0.0.1:\(port)/v1/events?after=\(position)&limit=1000&wait=\(waitSeconds)")
        request.headers.add(name: "authorization", value: "Bearer \(key)")
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
        let body = try await response.body.collect(upTo: 16 << 20)
        return try JSONDecoder().decode(Page.self, from: Data(body.readableBytesView))
    }
}
