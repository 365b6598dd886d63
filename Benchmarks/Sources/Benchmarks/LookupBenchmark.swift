import ArgumentParser
import Foundation
import NIOCore

/// Lookups over HTTP beside a constant route of the same server.
struct LookupBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lookups",
        abstract: "Asks for entitlements: beside a constant route, and while a worker checks at full speed.")

    @Option(help: "Customers that are asked about.")
    var customers = 20_000

    @Option(help: "Seconds of each load.")
    var seconds = 10.0

    @Option(help: "Connections at a time.")
    var connections = 128

    private static let port = 8_192

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        try await world.startSimulator(customers: customers)
        try await world.run(["import", try await world.saveReceipts().path])
        try await world.run(["worker", "--once"])
        let key = try await world.run(["key", "create", "--scope", "read", "--rate", "0"]).split(separator: "\n").last ?? ""
        try world.start("server", ["serve", "--http-port", "\(Self.port)"])
        try await Task.sleep(for: .seconds(2))
        let load = LoadGenerator(port: Self.port, connections: connections)
        let constant = try await load.run(seconds: seconds) { _ in Self.request("/healthz", key: String(key)) }
        print(constant.line("constant route"))
        let lookups = try await load.run(seconds: seconds) { lookup($0, key: String(key)) }
        print(lookups.line("lookups"))
        print("lookups over constant route: \((lookups.rate / constant.rate).shown)")
    }

    private func lookup(_ number: Int, key: String) -> ByteBuffer {
        let digits = String(number &* 7919 % customers)
        let name = "c" + String(repeating: "0", count: 6 - digits.count) + digits
        return Self.request("/v1/apps/\(World.app)/customers/\(name)/entitlements", key: key)
    }

    private static func request(_ path: String, key: String) -> ByteBuffer {
        ByteBuffer(string: "GET \(path) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(key)\r\n\r\n")
    }
}
