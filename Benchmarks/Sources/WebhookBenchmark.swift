import ArgumentParser
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Postgres
import Subscriptions
import Synchronization

/// How fast two webhooks deliver, what a delivery costs, how long after its place in the feed an event arrives, and what it
/// takes from the checks beside it.
struct WebhookBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "webhooks",
        abstract:
            "Lets two webhooks deliver a backlog, then the events of new receipts as they come; then checks beside them."
    )

    @Option(help: "Receipts a second that the app's rate allows; each brings two or three events.")
    var rate = 420

    @Option(help: "Seconds that are counted.")
    var seconds = 20

    private static let ports = [8_193, 8_194]
    private static let warmUpSeconds = 4

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        let receipts = rate * (seconds + 2 * Self.warmUpSeconds)
        try await world.startSimulator(customers: 2 * receipts)
        let lines = try String(contentsOf: try await world.saveReceipts(), encoding: .utf8).split(separator: "\n")
        let halves = [lines.prefix(receipts), lines.dropFirst(receipts)].map { $0.joined(separator: "\n") + "\n" }
        for (name, half) in zip(["first", "second"], halves) {
            try half.write(toFile: "\(name).ndjson", atomically: true, encoding: .utf8)
        }
        defer { for name in ["first", "second"] { try? FileManager.default.removeItem(atPath: "\(name).ndjson") } }
        try await world.run(["import", "first.ndjson"])
        try await world.run(["worker", "--once"])
        let receiver = Receiver()
        let servers = try await receiver.listen(on: Self.ports)
        for port in Self.ports {
            try await world.run(["webhook", "add", "--url", "http://127.0.0.1:\(port)/", "--from", "beginning"])
        }
        try await world.skipSummaries()
        let backlog = try await world.number("SELECT position AS number FROM ledger.feed") * Int64(Self.ports.count)
        try world.start("worker", ["worker"])
        let delivered = try await world.measured {
            while receiver.count < backlog { try await Task.sleep(for: .milliseconds(20)) }
            return receiver.count
        }
        print(delivered.line("deliveries of a backlog to two webhooks"))
        print("worker and PostgreSQL, each delivery: \(Int(delivered.microseconds(in: "worker", "postgres"))) µs")
        receiver.forget()
        try await world.run(["app", "set", World.app.text, "--rate", "\(rate)", "--burst", "\(rate / 10)"])
        try await world.run(["import", "second.ndjson"])
        try await Task.sleep(for: .seconds(seconds + Self.warmUpSeconds))
        world.stop("worker")
        let placed = try await places(world)
        let waits = receiver.arrivals.compactMap { position, at in placed[position].map { at - $0 } }
        print(
            LoadResult(latencies: waits.map { Int64($0 * 1_000_000_000) }.sorted(), seconds: Double(seconds)).line(
                "events, from placed to received"))
        try await measureChecks(world, receiver)
        for server in servers { try await server.close() }
    }

    /// The rate of checks alone, and beside 200 deliveries a second.
    private func measureChecks(_ world: World, _ receiver: Receiver) async throws {
        try await world.run(["app", "set", World.app.text, "--rate", "0"])
        try await world.run(["webhook", "set", "2", "--off"])
        try await world.run(["webhook", "set", "1", "--off", "--concurrency", "8"])
        // The first checks of what is new differ from the later ones.
        _ = try await checks(world)
        var rates: [Bool: [Double]] = [:]
        receiver.answer(after: .milliseconds(38))
        for round in 0..<6 {
            let isBeside = !round.isMultiple(of: 2)
            try await world.run(["webhook", "set", "1", isBeside ? "--on" : "--off"])
            if isBeside { try await world.run(["webhook", "replay", "1", "--from", "beginning"]) }
            receiver.forget()
            let checked = try await checks(world)
            print(
                "\(checked.line("checks")); deliveries beside them: \(Int(Double(receiver.count) / checked.seconds))/s")
            rates[isBeside, default: []].append(checked.rate)
        }
        let (alone, beside) = (rates[false, default: []].sorted()[1], rates[true, default: []].sorted()[1])
        print("checks beside deliveries over alone: \((beside / alone).shown)")
    }

    /// Lets a worker check everything once.
    private func checks(_ world: World) async throws -> Measurement {
        try await world.makeEverythingDue()
        let due = try await world.scheduledReceipts()
        defer { world.stop("worker") }
        return try await world.measured {
            try world.start("worker", ["worker"])
            while try await world.dueReceipts() > 0 { try await Task.sleep(for: .milliseconds(100)) }
            return due
        }
    }

    /// When each event got its position, in seconds since 1970: the cluster of the benchmarks keeps that.
    private func places(_ world: World) async throws -> [Int64: Double] {
        try await world.database.query(
            Statement(
                name: "places",
                sql: """
                    SELECT position, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 AS placed
                    FROM ledger.event_feed
                    """)
        ).reduce(into: [:]) { $0[try $1.int8("position")] = try $1.float8("placed") }
    }
}

/// Receivers that answer 204 and note when which position arrived.
private final class Receiver: Sendable {
    private let noted = Mutex<[(position: Int64, at: Double)]>([])
    private let wait = Mutex(TimeAmount.zero)

    var count: Int { noted.withLock { $0.count } }
    var arrivals: [(position: Int64, at: Double)] { noted.withLock { $0 } }
    func forget() { noted.withLock { $0 = [] } }

    /// Answers later calls after a time.
    func answer(after wait: TimeAmount) { self.wait.withLock { $0 = wait } }
    fileprivate var waits: TimeAmount { wait.withLock { $0 } }

    func listen(on ports: [Int]) async throws -> [any Channel] {
        var servers: [any Channel] = []
        for port in ports {
            servers.append(
                try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                    .childChannelInitializer { [self] channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                            try channel.pipeline.syncOperations.addHandler(Answers(receiver: self))
                        }
                    }
                    .bind(host: "127.0.0.1", port: port).get())
        }
        return servers
    }

    fileprivate func note(_ body: [UInt8]) {
        // The position of the feed is the last number behind this name.
        let text = String(decoding: body, as: UTF8.self)
        guard let range = text.range(of: "\"position\": ", options: .backwards),
            let position = Int64(text[range.upperBound...].prefix { $0.isNumber })
        else { return }
        let now = Date.now.timeIntervalSince1970
        noted.withLock { $0.append((position, now)) }
    }
}

private final class Answers: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let receiver: Receiver
    private var body: [UInt8] = []

    init(receiver: Receiver) { self.receiver = receiver }

    private static func answer(_ channel: any Channel) {
        let head = HTTPResponseHead(version: .http1_1, status: .noContent)
        channel.write(HTTPServerResponsePart.head(head), promise: nil)
        channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head: body = []
        case .body(let part): body += part.readableBytesView
        case .end:
            receiver.note(body)
            let wait = receiver.waits
            guard wait > .zero else { return Self.answer(context.channel) }
            context.eventLoop.scheduleTask(in: wait) { [channel = context.channel] in Self.answer(channel) }
        }
    }
}
