import HTTPTypes
import Hummingbird
import NIOCore
import NIOPosix
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Ledger
@testable import Server

/// Kim has an entitlement in it. The tests write nothing but keys.
private let granted = OncePerSuite<ServedLedger> { lend in
    try await ServedLedger.with { served in
        _ = try await served.ledger.customers.grant(
            "pro", to: "kim", of: ServedLedger.app, until: nil,
            deciding: try ManualDecision(by: "ann", because: "asked"))
        try await lend(served)
    }
}

@Suite("Lookups from memory have the same answers as the others", granted)
struct AtOnceTests {
    /// A request for kim's entitlements. Its answers differ only by the clock.
    private static func lookup(_ secret: String, _ more: String = "") -> String {
        "GET \(Serving.entitlements) HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer \(secret)\r\n\(more)\r\n"
    }

    /// The lines of the answers in what came, without what says when they were given, and that one is the last.
    private static func answers(in text: String) -> [[String]] {
        text.replacing(#/"(at|known_at)":"[^"]*"/#, with: "").split(separator: "HTTP/1.1 ").map { answer in
            answer.split(separator: "\r\n").map(String.init)
                .filter { !$0.hasPrefix("Date: ") && $0 != "Connection: close" }.sorted()
        }
    }

    @Test("They are what Hummingbird's way gives, header by header")
    func sameAnswers() async throws {
        try await Serving.onPort(of: granted) { served, port in
            _ = try await RawExchange.send(Self.lookup(served.secret, "Connection: close\r\n"), port: port)
            let tag = try #require(
                try await RawExchange.send(Self.lookup(served.secret, "Connection: close\r\n"), port: port)
                    .firstMatch(of: #/ETag: (W/"[0-9a-f]+")/#)?.output.1)
            for more in ["X-Request-Id: one\r\n", "X-Request-Id: one\r\nIf-None-Match: \(tag)\r\n"] {
                // Who says how the connection is to go on is answered the usual way.
                let last = Self.lookup(served.secret, "Connection: close\r\n" + more)
                let all = String(repeating: Self.lookup(served.secret, more), count: 20) + last
                let answers = Self.answers(in: try await RawExchange.send(all, port: port))
                #expect(answers.count == 21 && Set(answers).count == 1, "\(Set(answers))")
                #expect(
                    answers[0].joined().contains(more.contains("None") ? "304 Not Modified" : #""entitlement":"pro""#))
            }
        }
    }

    /// What is written otherwise, asks for something else, or is about others.
    private static let otherPaths =
        ["?at=2026-01-01T00:00:00Z", "/", "?", "#", "%20"].map { Serving.entitlements + $0 } + [
            "", "/", "*", "/v1/apps/com.example.app/customers//kim/entitlements",
            "/v1/apps/com.example.app/customers//entitlements", "/v1/apps//customers/kim/entitlements",
            "//v1/apps/com.example.app/customers/kim/entitlements", "/v1/apps/com.example.app/customers/kim",
            "/v1/apps/com.example.app/customers/k%69m/entitlements",
            "/v1/apps/com.example.app/customers/kím/entitlements",
            "/v1/apps/com.example.other/customers/kim/entitlements",
            "/v1/apps/com.example.app/customers/bob/entitlements",
            "/v1/apps/com.example.app/customers/\(String(repeating: "k", count: 300))/entitlements",
        ]

    @Test("Only what is plain and known is answered so; what is to be refused is not")
    func onlyThat() async throws {
        try await granted.use { served in
            let (limited, other) = (
                try await served.key(.read, rate: RequestRate(perSecond: 0.001, burst: 2)),
                try await served.key(.read, for: "com.example.other")
            )
            let tracker = Tracker.quiet(served.ledger)
            let authenticator = APIKeyAuthenticator(keys: KeyCache { try await served.ledger.apps.key(withSecret: $0) })
            let lookups = GetEntitlements(
                tracker: tracker, apps: KnownApps(served.ledger), rights: RightsLookup(served.ledger))
            let atOnce = EntitlementsAtOnce(
                lookups: lookups, authenticator: authenticator, counters: RequestCounters(registry: MetricsRegistry()))
            func status(_ path: String, _ secret: String?) -> Int? {
                var request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: path)
                if let secret { request.headerFields[.authorization] = "Bearer \(secret)" }
                return atOnce.answer(request)?.head.status.code
            }
            #expect(status(Serving.entitlements, served.secret) == nil, "nothing is known yet")
            for secret in [served.secret, limited, other] { _ = try await authenticator.keys.key(withSecret: secret) }
            #expect(status(Serving.entitlements, served.secret) == nil)
            _ = try await lookups.apps.require(ServedLedger.app)
            #expect(status(Serving.entitlements, served.secret) == nil)
            let kim = CustomerName("kim", of: ServedLedger.app)
            // Rights are forgotten after milliseconds: an answer counts only if kim's rights are still known after it.
            func reported(_ path: String, _ secret: String?) async throws -> Int? {
                for _ in 0..<100 {
                    _ = try await lookups.rights.rights(of: [kim])
                    let reported = status(path, secret)
                    if status(Serving.entitlements, served.secret) == 200 { return reported }
                }
                Issue.record("nothing is answered at once")
                return nil
            }
            #expect(try await reported(Serving.entitlements, served.secret) == 200)
            #expect(try await reported(Serving.entitlements, other) == nil, "of another app")
            #expect(try await reported(Serving.entitlements, nil) == nil)
            #expect(try await reported(Serving.entitlements, TestKey.unknown.secret) == nil)
            for path in Self.otherPaths { #expect(try await reported(path, served.secret) == nil, "\(path)") }
            for expected in [200, 200, nil, nil] {
                #expect(try await reported(Serving.entitlements, limited) == expected)
            }
        }
    }

    @Test("Thousands in one packet are answered in their order, whatever comes between")
    func manyInOnePacket() async throws {
        try await Serving.onPort(of: granted) { served, port in
            let many = (0..<3_000).map { number in
                Self.lookup(
                    served.secret,
                    "X-Request-Id: number-\(number)\r\n" + (number % 500 == 7 ? "Content-Length: 0\r\n" : ""))
            }
            let last = Self.lookup(served.secret, "X-Request-Id: number-3000\r\nConnection: close\r\n")
            let text = try await RawExchange.send(many.joined() + last, port: port)
            #expect(text.matches(of: #/X-Request-Id: number-(\d+)/#).map { Int($0.output.1) } == Array(0...3_000))
            #expect(text.matches(of: #/HTTP/1.1 200/#).count == 3_001)
        }
    }

    @Test("A client that does not read gets no more answers than a connection holds")
    func whoDoesNotRead() async throws {
        var limits = ServerLimits()
        limits.sendBufferBytes = 64 * 1024
        try await Serving.onPort(of: granted, limits) { served, port in
            let deaf = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelOption(.autoRead, value: false).channelOption(.socketOption(.so_rcvbuf), value: 16 * 1024)
                .connect(host: "127.0.0.1", port: port).get()
            let asked = 20_000
            let one = ByteBuffer(string: Self.lookup(served.secret))
            for _ in 0..<asked { deaf.write(one, promise: nil) }
            deaf.flush()
            var answered = [-1, 0]
            while answered.last != answered.dropLast().last || answered.last == 0 {
                try await Task.sleep(for: .milliseconds(300))
                let page = try await RawExchange.send(
                    "GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n", port: port)
                let counts = page.matches(of: #/perennial_lookups_total\{[^}]*\} (\d+)/#).compactMap {
                    Int($0.output.1)
                }
                answered.append(counts.reduce(0, +))
            }
            #expect(try #require(answered.last) < asked / 2)
            try await deaf.close()
        }
    }
}
