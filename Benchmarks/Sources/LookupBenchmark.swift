import ArgumentParser
import Foundation
import NIOCore
import Server
import Subscriptions

/// Lookups over HTTP beside a constant route of the same server.
struct LookupBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lookups",
        abstract:
            "Asks for entitlements: beside a constant route, and while a worker checks at full speed, or at a rate.")

    @Option(help: "Customers that are asked about, in random order and each once at most while they last.")
    var customers = 1_000_000

    @Option(help: "Further customers, whose receipts the worker checks meanwhile.")
    var checked = 50_000

    @Option(help: "Seconds of each load.")
    var seconds = 10.0

    @Option(help: "Connections at a time.")
    var connections = 128

    @Option(help: "Lookups a second that are offered beside the worker.")
    var offered = 300.0

    @Option(help: "Checks a second that the app's rate allows the worker; 0 is full speed.")
    var rate = 0

    @Option(help: "By how much the worker is nicer than the server; docs/scaling.md says why.")
    var nice = 10

    @Option(help: "Real-time priority of server and client when that is measured too; 0 leaves it out.")
    var realTime = 10

    private static let port = 8_192

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        try await world.startSimulator(customers: checked, nice: 19)
        try await world.run(["import", try await world.saveReceipts().path])
        // The second answer is about the newest receipt and differs once from the first.
        for _ in 0..<2 {
            try await world.makeEverythingDue()
            try await world.run(["worker", "--once"])
        }
        let file = try World.value("BENCHMARKS") + "/lib/fill_customers.sql"
        try world.psql([
            world.connectionString, "--set=customers=\(customers)", "--set=app=\(World.app)", "--file=\(file)",
        ])
        let key =
            try await world.run(["key", "create", "--scope", "read", "--rate", "0"]).split(separator: "\n").last ?? ""
        try world.start("server", ["serve", "--http-port", "\(Self.port)"])
        try world.start("layers", ["layers", "--port", "\(Self.port + 1)"], program: CommandLine.arguments[0])
        try await Task.sleep(for: .seconds(2))
        try await layers(world, key: String(key))
        world.stop("layers")
        try await atFullSpeed(world, key: String(key))
        if rate > 0 {
            try await world.run(["app", "set", World.app.text, "--rate", "\(rate)", "--burst", "\(max(rate / 10, 1))"])
        }
        try await world.skipSummaries()
        try await besideAWorker(world, key: String(key))
        guard realTime > 0 else { return }
        guard try world.giveRealTime(priority: realTime, to: "server") else {
            return print("real-time priority is not permitted here (CAP_SYS_NICE, RLIMIT_RTPRIO): not measured")
        }
        print("server and client at real-time priority \(realTime):")
        try await besideAWorker(world, key: String(key))
    }

    /// What each layer of a lookup adds to the processor time of its server: first the framework's, then ours on its route.
    private func layers(_ world: World, key: String) async throws {
        var before = 0.0
        func price(_ name: String, of server: String, port: Int, _ request: @escaping @Sendable (Int) -> ByteBuffer)
            async throws -> Double
        {
            let load = LoadGenerator(port: port, connections: connections)
            let used = try await measured(world, name) { try await load.run(seconds: seconds / 2, request: request) }.1
                .microseconds(in: server)
            print("  its price: \((used - before).shown) µs")
            return used
        }
        before = try await price(
            "a handler of swift-nio, constant JSON", of: "layers", port: Self.port + 2,
            requests("/constant/", end: "", key: key))
        var framework: Double?
        for (name, path) in LookupLayers.routes {
            before = try await price(name, of: "layers", port: Self.port + 1, requests(path, end: "", key: key))
            framework = framework ?? before
        }
        before = framework ?? 0
        for (name, path) in LookupLadder.rungs {
            before = try await price(name, of: "layers", port: Self.port + 3, requests(path, end: "", key: key))
        }
        before = try await price(
            "the lookup of a server with all its routes", of: "server", port: Self.port, lookups(key: key))
        let limited = ["key", "create", "--scope", "read", "--rate", "1000000"]
        let rated = try await world.run(limited).split(separator: "\n").last ?? ""
        _ = try await price(
            "the key's rate and its headers", of: "server", port: Self.port, lookups(key: String(rated)))
    }

    private func atFullSpeed(_ world: World, key: String) async throws {
        let load = LoadGenerator(port: Self.port, connections: connections)
        let constant = try await measured(world, "constant route") {
            let request = Self.request("/healthz", key: key)
            return try await load.run(seconds: seconds) { _ in request }
        }.0
        let found = try await measured(world, "lookups") {
            try await load.run(seconds: seconds, request: lookups(key: key))
        }.0
        print("lookups over constant route: \((found.rate / constant.rate).shown)")
    }

    /// Runs a load; prints its rate, its times, and what it cost each process.
    private func measured(
        _ world: World, _ name: String, _ load: () async throws -> LoadResult
    ) async throws -> (LoadResult, Measurement) {
        let before = world.processorSeconds()
        let result = try await load()
        let used = world.processorSeconds().merging(before) { $0 - $1 }
        print(result.line(name))
        let measurement = Measurement(
            count: result.latencies.count, seconds: result.seconds, processorSeconds: used)
        print(measurement.line("  the same"))
        return (result, measurement)
    }

    /// The same rate of lookups while a worker asks about every receipt as fast as it can, and before and after that; at the
    /// same time the constant route, which tells what of it is the machine's.
    private func besideAWorker(_ world: World, key: String) async throws {
        let before = try await measureOffered(key: key)
        try await world.makeEverythingDue()
        try world.start("worker", ["worker"], nice: nice)
        try await Task.sleep(for: .seconds(1))
        let due = try await world.dueReceipts()
        let beside = try await measureOffered(key: key)
        let left = try await world.dueReceipts()
        world.stop("worker")
        let after = try await measureOffered(key: key)
        if left == 0 { print("the worker had nothing left to do: more --customers are needed") }
        let checks = Int(Double(due - left) / seconds)
        for (name, load) in [("constant route", \OfferedLoad.constant), ("lookups", \OfferedLoad.lookups)] {
            let alone = before[keyPath: load].joined(by: after[keyPath: load])
            print(alone.line("\(name) alone"))
            print(beside[keyPath: load].line("\(name) beside \(checks) checks a second"))
            let ratio = beside[keyPath: load].milliseconds(atShare: 0.99) / alone.milliseconds(atShare: 0.99)
            print("p99 of \(name) beside the worker over p99 alone: \(ratio.shown)")
        }
    }

    /// What came of requests at the offered rate.
    private struct OfferedLoad: Sendable {
        let constant: LoadResult
        let lookups: LoadResult
    }

    private func measureOffered(key: String) async throws -> OfferedLoad {
        let load = LoadGenerator(port: Self.port, connections: connections, offered: offered)
        let health = Self.request("/healthz", key: key)
        async let constant = load.run(seconds: seconds) { _ in health }
        async let found = load.run(seconds: seconds, request: lookups(key: key))
        return try await OfferedLoad(constant: constant, lookups: found)
    }

    /// Makes the request about a customer by number. What all requests share is written once, because the client runs on
    /// the same processors as the server.
    private func lookups(key: String) -> @Sendable (Int) -> ByteBuffer {
        requests("/v1/apps/\(World.app)/customers/", end: "/entitlements", key: key)
    }

    private func requests(_ path: String, end: String, key: String) -> @Sendable (Int) -> ByteBuffer {
        let customers = customers
        let begin = ByteBuffer(string: "GET \(path)f")
        let end = ByteBuffer(string: "\(end) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(key)\r\n\r\n")
        return { number in
            var request = begin
            var unit = 1_000_000
            while unit > 0 {
                request.writeInteger(UInt8(ascii: "0") + UInt8(number &* 7919 % customers / unit % 10))
                unit /= 10
            }
            request.writeImmutableBuffer(end)
            return request
        }
    }

    private static func request(_ path: String, key: String) -> ByteBuffer {
        ByteBuffer(string: "GET \(path) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(key)\r\n\r\n")
    }
}
