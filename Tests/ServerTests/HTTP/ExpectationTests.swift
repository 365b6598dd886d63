import Hummingbird
import TestSupport
import Testing

@testable import Server

/// Each test has a server of its own on it, and writes nothing.
private let servedLedger = OncePerSuite(ServedLedger.with)

@Suite("Callers with Expect: 100-continue or HTTP/1.0 are answered", servedLedger) struct ExpectationTests {
    private static let batch = "/v1/apps/com.example.app/entitlements:batch"
    private static let body = #"{"customers":["kim"]}"#

    private func head(_ path: String, secret: String?, length: Int) -> String {
        let key = secret.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        return "POST \(path) HTTP/1.1\r\nHost: here\r\nExpect: 100-Continue\r\nContent-Length: \(length)\r\n\(key)"
    }

    @Test("A caller that waits to be asked for its body is asked")
    func askedForTheBody() async throws {
        try await Serving.onPort(of: servedLedger) { served, port in
            let head = head(Self.batch, secret: served.secret, length: Self.body.utf8.count)
            let answer = try await RawExchange.send(
                head + "Connection: close\r\n\r\n", awaiting: "HTTP/1.1 100 Continue\r\n\r\n", then: Self.body,
                port: port)
            #expect(answer.hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "\(answer)")
            #expect(answer.contains(#""customer":"kim""#))
        }
    }

    @Test("The connection serves another request after that")
    func goesOn() async throws {
        try await Serving.onPort(of: servedLedger) { served, port in
            let head = head(Self.batch, secret: served.secret, length: Self.body.utf8.count) + "\r\n"
            let next = "GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
            let answer = try await RawExchange.send(
                head, awaiting: "100 Continue\r\n\r\n", then: Self.body + next, port: port)
            #expect(answer.matches(of: #/HTTP/1.1 (\d+)/#).map(\.output.1) == ["100", "200", "200"], "\(answer)")
        }
    }

    @Test("A request that is refused for its head is refused before its body is sent")
    func refusedBefore() async throws {
        try await Serving.onPort(of: servedLedger) { served, port in
            let requests = [
                (head(Self.batch, secret: nil, length: 100), "401"),
                (head(Self.batch, secret: served.secret, length: ServerLimits().bodyBytesMax + 1), "413"),
                (head(Self.batch + "?att=1", secret: served.secret, length: 100), "400"),
                (head("/nowhere", secret: nil, length: 100), "404"),
            ]
            for (request, status) in requests {
                let answer = try await RawExchange.send(request + "\r\n", port: port, until: "}")
                #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
                #expect(answer.contains("Connection: close\r\n"), "\(answer)")
            }
        }
    }

    @Test("Nothing is taken after the last request", arguments: ["close", "Close", "keep-alive, close"])
    func lastRequest(_ option: String) async throws {
        try await Serving.onPort(of: servedLedger) { _, port in
            let last = "GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: \(option)\r\n\r\n"
            let answer = try await RawExchange.send(last + last, port: port)
            #expect(answer.matches(of: #/HTTP/1.1 (\d+)/#).map(\.output.1) == ["200"], "\(answer)")
            #expect(answer.contains("Connection: close\r\n"), "\(answer)")
        }
    }

    @Test("HTTP/1.0 gets an answer and the end of its connection", arguments: ["", "Connection: keep-alive\r\n"])
    func oldHTTP(field: String) async throws {
        try await Serving.onPort(of: servedLedger) { served, port in
            let begin = ContinuousClock.now
            let get = "GET /healthz HTTP/1.0\r\n\(field)\r\n"
            let answer = try await RawExchange.send(get + get, port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.hasSuffix(#"{"status":"alive"}"#), "\(answer)")
            #expect(answer.contains("Connection: close\r\n") && answer.matches(of: /HTTP/).count == 1, "\(answer)")
            // An expectation in HTTP/1.0 is none, and an entitlement is not answered at once but as any other request.
            let key = "Authorization: Bearer \(served.secret)\r\n"
            let post = "POST \(Self.batch) HTTP/1.0\r\n\(key)\(field)Expect: 100-continue\r\n"
            let reported = try await RawExchange.send(
                post + "Content-Length: \(Self.body.utf8.count)\r\n\r\n\(Self.body)", port: port)
            #expect(reported.hasPrefix("HTTP/1.1 200 OK\r\n"), "\(reported)")
            let rights = try await RawExchange.send(
                "GET \(Serving.entitlements) HTTP/1.0\r\n\(key)\(field)\r\n", port: port)
            #expect(rights.hasPrefix("HTTP/1.1 200 OK\r\n") && rights.contains("Connection: close\r\n"), "\(rights)")
            #expect(ContinuousClock.now - begin < .seconds(20))
        }
    }
}
