import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import Server

@Suite("A connection is HTTP/1.1 as its callers know it") struct WireTests {
    /// A server with routes for tests, which run until `body` ends.
    private struct Served: Sendable {
        let port: Int
        /// Lets `/late` and `/held` go on.
        let open: @Sendable () -> Void
        /// Stops the server gracefully.
        let stop: @Sendable () async -> Void
        /// How often `/large` was asked for.
        let largeCount: @Sendable () -> Int
    }

    private static let large = ByteBuffer(repeating: UInt8(ascii: "x"), count: 1 << 20)

    private func serving(
        _ limits: ServerLimits = ServerLimits(), _ body: @escaping @Sendable (Served) async throws -> Void
    ) async throws {
        let (gate, opener) = AsyncStream.makeStream(of: Void.self)
        let waiting = Task { for await _ in gate {} }
        let counted = Atomic(0)
        let router = ListingRouter()
        router.add(middleware: ProblemMiddleware())
        router.get("/word") { _, _ in Response(status: .ok, body: .init(byteBuffer: .init(string: "word"))) }
        router.get("/nothing") { _, _ in Response(status: .noContent) }
        router.get("/same") { _, _ in Response(status: .notModified, headers: [.eTag: "W/\"1\""]) }
        router.get("/large") { _, _ in
            counted.add(1, ordering: .relaxed)
            return Response(status: .ok, body: .init(byteBuffer: Self.large))
        }
        router.get("/late") { _, _ in
            await waiting.value
            return Response(status: .ok, body: .init(byteBuffer: .init(string: "late")))
        }
        router.post("/refused") { _, _ -> Response in throw Problem(.forbidden, "No caller may do this.") }
        router.post("/held") { request, _ in
            await waiting.value
            var count = 0
            for try await part in request.body { count += part.readableBytes }
            return Response(status: .ok, body: .init(byteBuffer: .init(string: "\(count) bytes")))
        }
        let (ports, found) = AsyncStream.makeStream(of: Int.self)
        let responder = router.buildResponder()
        let application = Application(
            responder: responder, server: HTTPServerBuilder { _ in Connections(responder: responder, limits: limits) },
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { found.yield($0.localAddress?.port ?? 0) }, logger: .quiet)
        let services = ServiceGroup(configuration: .init(services: [application], logger: .quiet))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { found.finish() }
                try await services.run()
            }
            for await port in ports {
                let served = Served(
                    port: port, open: { opener.finish() }, stop: { await services.triggerGracefulShutdown() },
                    largeCount: { counted.load(ordering: .relaxed) })
                defer { opener.finish() }
                try await body(served)
                opener.finish()
                await services.triggerGracefulShutdown()
                break
            }
            try await group.waitForAll()
        }
    }

    private func request(_ line: String, _ fields: String = "") -> String { "\(line)\r\nHost: here\r\n\(fields)\r\n" }

    private func connect(_ port: Int, reading: Bool = true) async throws -> any Channel {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: reading).connect(host: "127.0.0.1", port: port).get()
    }

    private let close = "Connection: close\r\n"
    private static var sent: Regex<Substring> {
        /Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/
    }

    @Test("A connection ends when its caller wants that, and not before") func theEndIsTheCallers() async throws {
        try await serving { served in
            let get = "GET /word HTTP/1.1"
            let several = try await RawExchange.send(
                request(get) + request(get, close) + request(get), port: served.port)
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
            let answers = several.replacing(Self.sent, with: "").replacing(/X-Request-Id: \w+\r\n/, with: "")
            let server = "Server: perennial\r\n\r\nword"
            #expect(answers == head + server + head + close + server)
            #expect(several.matches(of: Self.sent).count == 2)
            let old = try await RawExchange.send(request("GET /word HTTP/1.0"), port: served.port)
            #expect(old.hasPrefix("HTTP/1.1 200 OK\r\n") && old.hasSuffix("\r\n\r\nword"))
        }
    }

    @Test("Answers without a body have none, and say so") func answersWithoutABody() async throws {
        try await serving { served in
            let all = try await RawExchange.send(
                ["HEAD /word", "HEAD /nowhere", "GET /nothing", "GET /same"].map { request($0 + " HTTP/1.1") }.joined()
                    + request("GET /word HTTP/1.1", close), port: served.port)
            let answers = all.split(separator: "\r\n\r\n").map(String.init)
            #expect(answers.map { $0.prefix(12) } == [200, 404, 204, 304, 200].map { "HTTP/1.1 \($0)" } + ["word"])
            try #require(answers.count == 6, "\(all)")
            #expect(answers[0].contains("Content-Length: 4") && !answers[1].contains("Content-Length: 0"))
            #expect(!answers[2].contains("Content-Length") && !answers[3].contains("Content-Length"))
        }
    }

    @Test("A body may come in pieces of any size", arguments: [1, 7, 4096, 1 << 20])
    func pieces(_ pieceBytes: Int) async throws {
        try await serving { served in
            served.open()
            let count = pieceBytes * 300 < 1 << 20 ? pieceBytes * 300 : 1 << 20
            let text = String(repeating: "x", count: count)
            let whole = request("POST /held HTTP/1.1", close + "Content-Length: \(count)\r\n") + text
            let chunk = String(count / 2, radix: 16) + "\r\n\(text.prefix(count / 2))\r\n"
            let chunked = request("POST /held HTTP/1.1", close + "Transfer-Encoding: chunked\r\n") + chunk + chunk
            for (sent, bytes) in [(whole, count), (chunked + "0\r\n\r\n", count / 2 * 2)] {
                let answer = try await RawExchange.send(sent, port: served.port, pieceBytes: pieceBytes)
                #expect(answer.hasSuffix("\r\n\r\n\(bytes) bytes"), "\(answer)")
            }
        }
    }

    @Test("What a route does not take yet stays with its caller") func whatIsNotTakenYet() async throws {
        try await serving { served in
            let (parts, part) = (48, Self.large)
            let taken = Mutex(0)
            let head = request("POST /held HTTP/1.1", close + "Content-Length: \(parts * part.readableBytes)\r\n")
            let channel = try await connect(served.port)
            channel.writeAndFlush(ByteBuffer(string: head), promise: nil)
            var last: EventLoopFuture<Void>?
            for _ in 0..<parts {
                let written = channel.eventLoop.makePromise(of: Void.self)
                channel.writeAndFlush(part, promise: written)
                written.futureResult.whenSuccess { taken.withLock { $0 += 1 } }
                last = written.futureResult
            }
            try await Task.sleep(for: .milliseconds(300))
            // What the two sockets hold, and little more.
            #expect(taken.withLock { $0 } < parts / 2)
            served.open()
            try await last?.get()
            try await channel.closeFuture.get()
        }
    }

    @Test("For a caller who does not read, one answer waits") func aCallerWhoDoesNotRead() async throws {
        try await serving { served in
            let channel = try await connect(served.port, reading: false)
            let many = String(repeating: request("GET /large HTTP/1.1"), count: 100)
            try await channel.writeAndFlush(ByteBuffer(string: many))
            try await Task.sleep(for: .milliseconds(300))
            #expect((1..<40).contains(served.largeCount()))
            let other = try await RawExchange.send(request("GET /word HTTP/1.1", close), port: served.port)
            #expect(other.hasSuffix("word"))
            try await channel.close()
        }
    }

    @Test("Who has nothing more to say still gets answers", arguments: ["GET /late HTTP/1.1", "GET /late HTTP/1.0"])
    func halfClosed(_ line: String) async throws {
        try await serving { served in
            async let late = RawExchange.send(request(line) + request(line), port: served.port, isLast: true)
            try await Task.sleep(for: .milliseconds(100))
            served.open()
            #expect(try await late.matches(of: /\r\n\r\nlate/).count == (line.hasSuffix("1.1") ? 2 : 1))
            let torn = try await RawExchange.send(
                request("POST /held HTTP/1.1", "Content-Length: 9\r\n") + "torn", port: served.port, isLast: true)
            #expect(torn.hasPrefix("HTTP/1.1 500 "), "\(torn)")
        }
    }

    @Test("A caller who is gone costs no other one an answer, and the server stops without it")
    func aCallerWhoIsGone() async throws {
        try await serving { served in
            for line in ["GET /late HTTP/1.1\r\n", "POST /held HTTP/1.1\r\nContent-Length: 100\r\n", "GET /lat"] {
                for reset in [true, false] {
                    let channel = try await connect(served.port)
                    try await channel.writeAndFlush(ByteBuffer(string: line + "Host: here\r\n\r\nx"))
                    // The server may have refused it and gone already.
                    if reset, let socket = channel as? any SocketOptionProvider {
                        try? await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
                    }
                    try? await channel.close()
                }
            }
            let answer = try await RawExchange.send(request("GET /word HTTP/1.1", close), port: served.port)
            #expect(answer.hasSuffix("word"))
        }
    }

    @Test("A server that stops ends what is silent at once, and answers what it was asked")
    func stopping() async throws {
        try await serving { served in
            let silent = try await connect(served.port)
            async let late = RawExchange.send(request("GET /late HTTP/1.1"), port: served.port)
            try await Task.sleep(for: .milliseconds(100))
            async let stopped: Void = served.stop()
            try await silent.closeFuture.get()
            served.open()
            let answer = try await late
            #expect(answer.hasSuffix("\r\n\r\nlate") && answer.lowercased().contains("connection: close"), "\(answer)")
            await stopped
        }
    }

    @Test("The body of a refused request is passed over, up to the limit of bodies")
    func aRefusedBody() async throws {
        var limits = ServerLimits()
        limits.bodyBytesMax = 1 << 20
        try await serving(limits) { served in
            func refused(_ count: Int) async throws -> String {
                let head = request("POST /refused HTTP/1.1", "Content-Length: \(count)\r\n")
                return try await RawExchange.send(
                    head + String(repeating: "x", count: count) + request("GET /word HTTP/1.1", close),
                    port: served.port)
            }
            let small = try await refused(1 << 20)
            #expect(small.hasPrefix("HTTP/1.1 403 ") && small.hasSuffix("word"), "\(small)")
            #expect(try await refused(16 << 20).contains("word") == false)
        }
    }

    @Test(
        "What two readers could take for different requests is refused, and nothing behind it is answered",
        arguments: [
            ("Content-Length: 4\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
            ("Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"),
            ("Transfer-Encoding: chunked, identity", "0\r\n\r\n"), ("Transfer-Encoding: xchunked", "0\r\n\r\n"),
            ("Content-Length: 4\r\nContent-Length: 4", "four"), ("Content-Length: 4, 4", "four"),
            ("Content-Length: +4", "four"), ("Content-Length : 4", "four"), ("Content-Length: 0x4", "four"),
            ("Content-Length: 18446744073709551617", "f"), (" Content-Length: 4", "four"), ("X:\u{0}y", ""),
            ("Transfer-Encoding: chunked", "fffffffffffffffff\r\n"), ("Transfer-Encoding: chunked", "-1\r\n\r\n"),
            ("Transfer-Encoding: chunked", "4\r\nfourX0\r\n\r\n"),
            ("Transfer-Encoding: chunked", "4\nfour\r\n0\r\n\r\n"),
        ])
    func twoReadings(_ field: String, _ body: String) async throws {
        try await serving { served in
            served.open()
            let sent = request("POST /held HTTP/1.1", field + "\r\n") + body + request("GET /word HTTP/1.1", close)
            let answer = try await RawExchange.send(sent, port: served.port)
            #expect(answer.contains(#/^HTTP/1.1 (400|500) /#) && !answer.contains("word"), "\(answer)")
            #expect(answer.matches(of: #/HTTP/1.1 \d+/#).count == 1 && answer.contains(close), "\(answer)")
        }
    }

    @Test(
        "A request to change the protocol is answered in this one, and is the last",
        arguments: [
            ("GET /word HTTP/1.1", "Connection: Upgrade\r\nUpgrade: h2c\r\n", "200"),
            ("CONNECT here:443 HTTP/1.1", "", "40"),
        ])
    func anotherProtocol(_ line: String, _ fields: String, _ status: String) async throws {
        try await serving { served in
            let answer = try await RawExchange.send(
                request(line, fields) + request("GET /word HTTP/1.1"), port: served.port)
            #expect(answer.hasPrefix("HTTP/1.1 \(status)") && answer.contains(close), "\(answer)")
            #expect(answer.matches(of: #/HTTP/1.1 \d+/#).count == 1, "\(answer)")
        }
    }

    @Test(
        "Who sends a head, or a body that no route reads, byte by byte is silent",
        arguments: ["GET /word HTTP/1.1\r\nX: ", "POST /refused HTTP/1.1\r\nContent-Length: 99999\r\n\r\n"])
    func byteByByte(_ start: String) async throws {
        var limits = ServerLimits()
        limits.idleSeconds = 1
        try await serving(limits) { served in
            let channel = try await connect(served.port)
            try await channel.writeAndFlush(ByteBuffer(string: start))
            let clock = ContinuousClock.now
            while channel.isActive, ContinuousClock.now - clock < .seconds(20) {
                try? await channel.writeAndFlush(ByteBuffer(string: "x"))
                try await Task.sleep(for: .milliseconds(100))
            }
            #expect(ContinuousClock.now - clock < .seconds(10))
        }
    }
}
