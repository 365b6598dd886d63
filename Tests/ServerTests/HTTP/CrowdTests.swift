import Hummingbird
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import TestSupport
import Testing
import Tracking

@testable import Server

/// Each test has a server of its own on it, and writes nothing.
private let servedLedger = OncePerSuite(ServedLedger.with)

@Suite("Many bad clients at once: none of them costs a good one its answer", servedLedger) struct CrowdTests {
    private func connect(_ port: Int, reading: Bool = true) async throws -> any Channel {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: reading)
            .connect(host: "127.0.0.1", port: port).get()
    }

    private func lookup(_ secret: String) -> String {
        "GET \(Serving.entitlements) HTTP/1.1\r\nHost: here\r\nConnection: close\r\nAuthorization: Bearer \(secret)\r\n\r\n"
    }

    @Test("A thousand slow clients cost no other client an answer")
    func aThousandSlowClients() async throws {
        try await Serving.onPort(of: servedLedger) { served, port in
            var slow: [any Channel] = []
            let heads = [
                "GET ", "GET /healthz HTTP/1.1\r\nHost: he", "",
                "POST \(Serving.receipts) HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer \(served.secret)\r\n"
                    + "Content-Length: 1000\r\n\r\n{\"customer\"",
            ]
            for number in 0..<1000 {
                let channel = try await connect(port)
                try await channel.writeAndFlush(ByteBuffer(string: heads[number % heads.count]))
                slow.append(channel)
            }
            for _ in 0..<20 {
                let answer = try await RawExchange.send(lookup(served.secret), port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 "))
            }
            // The server may have let go of the slowest ones already.
            for channel in slow where channel.isActive { try? await channel.close() }
        }
    }

    /// They ask for more than the sockets hold and take nothing of it.
    @Test("Clients that do not read cost no other client an answer")
    func clientsThatDoNotRead() async throws {
        try await Serving.onPort(of: servedLedger) { served, port in
            let many = String(repeating: "GET /openapi.yaml HTTP/1.1\r\nHost: here\r\n\r\n", count: 500)
            var deaf: [any Channel] = []
            for _ in 0..<20 {
                let channel = try await connect(port, reading: false)
                channel.writeAndFlush(ByteBuffer(string: many), promise: nil)
                deaf.append(channel)
            }
            for _ in 0..<20 {
                let answer = try await RawExchange.send(lookup(served.secret), port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 "))
            }
            for channel in deaf where channel.isActive { try? await channel.close() }
        }
    }

    /// Requests that come in one packet are all answered, in their order, whatever they are.
    @Test("Requests that come in one packet are all answered in their order")
    func requestsInOnePacket() async throws {
        try await Serving.onPort(of: servedLedger) { served, port in
            let key = "Host: here\r\nAuthorization: Bearer \(served.secret)\r\n"
            let body = #"{"customers":["kim"]}"#
            let requests = (0..<60).map { number in
                let fields = "\(key)X-Request-Id: number-\(number)\r\n"
                return switch number % 3 {
                case 0: "GET \(Serving.entitlements) HTTP/1.1\r\n\(fields)\r\n"
                case 1:
                    "POST /v1/apps/com.example.app/entitlements:batch HTTP/1.1\r\n\(fields)"
                        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
                default: "DELETE /healthz HTTP/1.1\r\n\(fields)Content-Length: 4\r\n\r\nnone"
                }
            }
            let last = "GET /healthz HTTP/1.1\r\n\(key)X-Request-Id: number-60\r\nConnection: close\r\n\r\n"
            let answer = try await RawExchange.send(requests.joined() + last, port: port)
            let reported = answer.matches(of: #/X-Request-Id: number-(\d+)/#).map { Int($0.output.1) }
            #expect(reported == Array(0...60))
            #expect(answer.matches(of: #/HTTP/1.1 (\d+)/#).map(\.output.1).prefix(3) == ["200", "200", "405"])
        }
    }

    /// What came before the nonsense is answered before it.
    @Test("What came before nonsense is answered before it")
    func nonsenseBehindARequest() async throws {
        try await Serving.onPort(of: servedLedger) { served, port in
            let answer = try await RawExchange.send(
                "GET /healthz HTTP/1.1\r\nHost: here\r\n\r\nGET /readyz HTTP/1.1\r\nHost: here\r\n\r\nNONSENSE\r\n\r\n",
                port: port)
            #expect(
                answer.matches(of: #/HTTP/1.1 (\d+)/#).map(\.output.1) == ["200", "200", "400"], "\(answer)")
        }
    }

    /// Ten kilobytes are within what a head may have, in every script, so that they get their problem and the next request its
    /// answer.
    @Test(
        "Ids of ten kilobytes are answered with a problem",
        arguments: [String(repeating: "k", count: 10 * 1024), String(repeating: "%F0%9F%98%80", count: 10 * 256)])
    func idsOfTenKilobytes(_ long: String) async throws {
        try await Serving.onPort(of: servedLedger) { served, port in
            let key = "Host: here\r\nConnection: close\r\nAuthorization: Bearer \(served.secret)\r\n"
            let requests = [
                ("GET /v1/apps/com.example.app/customers/\(long)", "400", "invalid"),
                ("GET /v1/apps/com.example.app/customers/\(long)/entitlements", "400", "invalid"),
                ("GET /v1/apps/\(long)/customers/kim/entitlements", "404", "unknown-app"),
                ("GET /v1/apps/com.example.app/receipts/\(long)", "404", "not-found"),
                ("GET /v1/events?feed=\(long)", "400", "invalid"),
                ("GET /v1/events?after=\(long)", "400", "invalid"),
                ("POST /v1/notifications/\(long)", "404", "not-found"),
                ("GET /\(long)", "404", "not-found"),
            ]
            for (request, status, kind) in requests {
                let answer = try await RawExchange.send("\(request) HTTP/1.1\r\n\(key)\r\n", port: port)
                #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(request.prefix(50)): \(answer.prefix(200))")
                #expect(
                    answer.contains("urn:perennial:problem:\(kind)"), "\(request.prefix(50)): \(answer.suffix(300))")
                #expect(!answer.contains(long), "\(request.prefix(50)) is sent back")
            }
            let alive = try await RawExchange.send("GET /healthz HTTP/1.1\r\n\(key)\r\n", port: port)
            #expect(alive.hasPrefix("HTTP/1.1 200 "))
        }
    }

    /// A connection that is silent for as long as connections may be is not: the server has yet to answer.
    @Test("Waiting for events is not silence")
    func waitingForEventsIsNotSilence() async throws {
        var limits = ServerLimits()
        limits.idleSeconds = 1
        try await Serving.onPort(of: servedLedger, limits) { served, port in
            let request =
                "GET /v1/events?wait=3 HTTP/1.1\r\nHost: here\r\nConnection: close\r\nAuthorization: Bearer \(served.secret)\r\n\r\n"
            let answer = try await RawExchange.send(request, port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.contains(#""events":[]"#))
        }
    }

    @Test("Waiters leave when the server stops")
    func waitersLeaveWhenTheServerStops() async throws {
        let start = ContinuousClock.now
        try await Serving.onPort(of: servedLedger) { served, port in
            let request =
                "GET /v1/events?wait=30 HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer \(served.secret)\r\n\r\n"
            for _ in 0..<5 {
                try await connect(port).writeAndFlush(ByteBuffer(string: request))
            }
            try await Task.sleep(for: .milliseconds(300))
        }
        #expect(ContinuousClock.now - start < .seconds(20))
    }
}
