import Hummingbird
import Postgres
import ServiceLifecycle
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("A running server refuses what is too large, too slow or no HTTP") struct LimitTests {
    private static let post =
        "POST \(Serving.receipts) HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer \(TestKey.write.secret)\r\n"

    /// Runs the server on a free port, as a service of a group, while `body` talks to it; then stops it gracefully.
    private func serving(
        _ limits: ServerLimits, _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        let database = Database(DatabaseConfiguration(connectionString: "host=127.0.0.1 port=1")) { _ in }
        let (ports, found) = AsyncStream.makeStream(of: Int.self)
        let server = HTTPServer(
            tracker: .quiet(SubscriptionLedger(database: database)), logger: .quiet,
            onListening: { found.yield($0) }, limits: limits, keys: KeyCache { TestKey.find($0) })
        let services = ServiceGroup(configuration: .init(services: [server], logger: .quiet))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { found.finish() }
                try await services.run()
            }
            for await port in ports {
                try await body(port)
                await services.triggerGracefulShutdown()
                break
            }
            try await group.waitForAll()
        }
        await database.close()
    }

    @Test("A body that is too large is refused")
    func tooLargeABody() async throws {
        var limits = ServerLimits()
        limits.bodyBytesMax = 1000
        try await serving(limits) { port in
            let announced = try await RawExchange.send(
                Self.post + "Connection: close\r\nContent-Length: 1001\r\n\r\n" + String(repeating: "x", count: 1001),
                port: port)
            #expect(announced.hasPrefix("HTTP/1.1 413 ") && announced.contains("urn:perennial:problem:too-large"))
            let chunk = "200\r\n" + String(repeating: "x", count: 512) + "\r\n"
            let chunked = try await RawExchange.send(
                Self.post + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk + "0\r\n\r\n",
                port: port)
            #expect(chunked.hasPrefix("HTTP/1.1 413 ") && chunked.contains("urn:perennial:problem:too-large"))
            let fits = try await RawExchange.send(
                Self.post + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + "0\r\n\r\n", port: port)
            #expect(fits.hasPrefix("HTTP/1.1 400 ") && fits.contains("The body is not JSON."))
        }
    }

    @Test("A body that never ends is cut off")
    func aBodyThatNeverEnds() async throws {
        var limits = ServerLimits()
        limits.bodySecondsMax = 0.1
        try await serving(limits) { port in
            let answer = try await RawExchange.send(Self.post + "Content-Length: 100\r\n\r\n{", port: port)
            #expect(answer.hasPrefix("HTTP/1.1 408 ") && answer.contains("urn:perennial:problem:timed-out"))
        }
    }

    @Test("A silent connection is closed")
    func aSilentConnectionIsClosed() async throws {
        var limits = ServerLimits()
        limits.idleSeconds = 1
        try await serving(limits) { port in
            #expect(try await RawExchange.send("GET /healthz HTTP/1.1\r\nHost: he", port: port) == "")
            let alive = try await RawExchange.send("GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n", port: port)
            #expect(alive.hasPrefix("HTTP/1.1 200 ") && alive.hasSuffix(#"{"status":"alive"}"#))
        }
    }

    @Test("A head that is too large is refused")
    func tooLargeAHead() async throws {
        var limits = ServerLimits()
        limits.headerBytesMax = 200
        limits.headerListBytesMax = 400
        limits.headerFieldsMax = 5
        try await serving(limits) { port in
            let get = "GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: here\r\n"
            let long = "X: " + String(repeating: "x", count: 300) + "\r\n"
            let some = "X: " + String(repeating: "x", count: 150) + "\r\n"
            for fields in [long, some + some + some, "A: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\n"] {
                let answer = try await RawExchange.send(get + fields + "\r\n", port: port)
                #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains("may have 5 headers"))
            }
            let answer = try await RawExchange.send(get + some + "\r\n", port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200 "))
        }
    }

    @Test(
        "What is no HTTP gets its problem and the end of its connection",
        arguments: [
            "NONSENSE\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\u{16}\u{3}\u{1}\u{0}\r\n\r\n",
            post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        ])
    func noHTTP(nonsense: String) async throws {
        try await serving(ServerLimits()) { port in
            let answer = try await RawExchange.send(nonsense, port: port)
            #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains("urn:perennial:problem:invalid"))
            #expect(answer.contains("Content-Type: application/problem+json\r\n") && answer.contains("X-Request-Id: "))
            let alive = "GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n"
            let behind = try await RawExchange.send(alive + nonsense, port: port)
            #expect(behind.hasPrefix("HTTP/1.1 200 ") && behind.contains(#"{"status":"alive"}HTTP/1.1 400 "#))
            #expect(behind.contains("urn:perennial:problem:invalid"))
        }
    }

    @Test("A body that is no HTTP is refused")
    func aBodyThatIsNoHTTP() async throws {
        try await serving(ServerLimits()) { port in
            let answer = try await RawExchange.send(
                Self.post + "Transfer-Encoding: chunked\r\n\r\nNO CHUNK\r\n", port: port)
            #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains("The body does not arrive as HTTP has it"))
        }
    }

    @Test("A taken port is an error")
    func aTakenPortIsAnError() async throws {
        try await serving(ServerLimits()) { port in
            let database = Database(DatabaseConfiguration(connectionString: "host=127.0.0.1 port=1")) { _ in }
            let second = HTTPServer(
                tracker: .quiet(SubscriptionLedger(database: database)), metrics: MetricsRegistry(), host: "127.0.0.1",
                port: port,
                logger: .quiet)
            await #expect(throws: (any Error).self) { try await second.run() }
            await database.close()
        }
    }
}
