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

    @Option(help: "Notifications a second that bring the events instead; the store answers in 100 ms.")
    var notified = 0

    private static let port = 8_192
    /// Seconds until the worker and the reader are at their pace.
    private static let warmUpSeconds = 4

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        if notified > 0 { return try await measureNotified(world) }
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

    /// Has customers turn renewal off, and waits for the event that the check after each notification brings.
    private func measureNotified(_ world: World) async throws {
        let token = try await world.run(["app", "notifications", World.app.text]).split(separator: "/").last ?? ""
        let root = FileManager.default.temporaryDirectory.appending(path: "perennial-benchmark-root.pem").path
        world.settings = [
            "PERENNIAL_APPSTORE_ROOT_FILE": root, "PERENNIAL_NOTIFICATION_WAIT_SECONDS": "0",
        ].merging(World.pretendServerAPI) { $1 }
        let address =
            "http://127.0.0.1:\(Self.port)/v1/notifications/\(token.trimmingCharacters(in: .whitespacesAndNewlines))"
        try await world.startSimulator(
            customers: 2 * notified * seconds, isStill: false,
            arguments: ["--plain", "--latency-ms", "100", "--signing-root-file", root, "--notify", address])
        try await world.run(["import", try await world.saveReceipts().path])
        let key =
            try await world.run(["key", "create", "--scope", "read", "--rate", "0"]).split(separator: "\n").last ?? ""
        try world.start("server", ["serve", "--http-port", "\(Self.port)"])
        try await world.run(["worker", "--once"])
        let rows = try await world.database.query(
            Statement(
                name: "renewing",
                sql: """
                    SELECT c.name FROM ledger.subscription s
                    JOIN ledger.ownership o ON o.subscription_id = s.subscription_id AND upper_inf(o.known)
                    JOIN ledger.customer c USING (customer_id)
                    WHERE s.will_renew AND s.expires_at > now() + interval '1 day' ORDER BY c.name
                    """))
        let customers = try rows.prefix(notified * seconds).map { try $0.text("name") }
        try await world.skipSummaries()
        // Apple is asked about a receipt at most once a minute.
        try await Task.sleep(for: .seconds(61))
        try world.start("worker", ["worker"])
        async let received = FeedReader(port: Self.port, key: String(key)).events(seconds: Double(seconds) + 6)
        try await Task.sleep(for: .seconds(Self.warmUpSeconds))
        let start = ContinuousClock.now
        var posted: [String: Double] = [:]
        for (number, customer) in customers.enumerated() {
            try await Task.sleep(until: start + .seconds(Double(number) / Double(notified)))
            posted[customer] = Date.now.timeIntervalSince1970
            try await world.act("disable_renewal", as: customer)
        }
        print("notifications: \(posted.count) in \(((ContinuousClock.now - start) / .seconds(1)).shown) s")
        let waits = try await received.compactMap { event in posted[event.customer].map { event.at - $0 } }
        print(line("events, from what happened to received", waits))
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
            let customer: String?

            private enum CodingKeys: String, CodingKey {
                case position, customer
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
        /// The customer, by the app operator's own id.
        let customer: String
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
                    position: event.position, recorded: recorded, at: now, customer: event.customer ?? "")
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
