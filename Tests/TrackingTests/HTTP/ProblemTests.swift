import AppStore
import Hummingbird
import Ledger
import Postgres
import Testing

@testable import Tracking

private struct Surprise: Error {
    let secret = "hunter2"
}

@Suite struct ProblemTests {
    @Test(arguments: ["/", "/v1", "/v1/apps", "/v1/apps/com.example.app", "/v2/apps/a/receipts", "/receipts"])
    func noSuchPath(_ path: String) async throws {
        let response = try await Serving.withoutDatabase { try await $0.send(.get, path) }
        try expectProblem(response, "not-found", status: 404)
    }

    @Test(arguments: [
        ("PUT", Serving.receipts, "POST"), ("GET", Serving.receipts, "POST"),
        ("DELETE", Serving.receipts + "/1", "GET, HEAD"),
        ("POST", Serving.entitlements, "GET, HEAD"), ("PATCH", "/healthz", "GET, HEAD"),
        ("POST", "/readyz", "GET, HEAD"),
        ("OPTIONS", "/openapi.yaml", "GET, HEAD"),
    ])
    func noSuchMethod(_ method: String, _ path: String, _ allow: String) async throws {
        let method = try #require(HTTPRequest.Method(rawValue: method))
        let response = try await Serving.withoutDatabase { try await $0.send(method, path) }
        try expectProblem(response, "method-not-allowed", status: 405)
        #expect(response.headers[.allow] == allow)
    }

    @Test(arguments: Problem.Kind.allCases)
    func everyKindIsWhole(_ kind: Problem.Kind) {
        #expect((400..<600).contains(kind.status.code))
        #expect(kind.title.first?.isUppercase == true && kind.rawValue.allSatisfy { $0.isLowercase || $0 == "-" })
    }

    @Test(
        arguments: [
            (DatabaseError(.cannotConnect, "db.internal refused"), 503, "1"),
            (DatabaseError(.connectionLost, "db.internal went away"), 503, "1"),
            (DatabaseError(.commitUnknown, "db.internal"), 503, "1"),
            (DatabaseError(.timedOut, "db.internal"), 503, "1"),
            (DatabaseError(.queueFull, "db.internal"), 503, "1"), (DatabaseError(.closed, "db.internal"), 503, "1"),
            (DatabaseError(.server(sqlState: "57P01", constraint: nil, table: nil), "db.internal"), 503, "1"),
            (DatabaseError(.server(sqlState: "42P01", constraint: nil, table: nil), "db.internal"), 503, "30"),
            (DatabaseError(.server(sqlState: "22021", constraint: nil, table: nil), "db.internal"), 500, nil),
            (DatabaseError(.decoding, "db.internal"), 500, nil),
            (LedgerError(.mismatch, "db.internal"), 503, "30"), (LedgerError(.busy, "Wait."), 503, "1"),
            (LedgerError(.exists, "There."), 409, nil), (LedgerError(.invalid, "Bad."), 400, nil),
            (LedgerError(.notFound, "Gone."), 404, nil), (ReceiptDataError.empty, 422, nil),
            (HTTPError(.notFound), 404, nil), (HTTPError(.badRequest), 400, nil), (Surprise(), 500, nil),
        ] as [(any Error, Int, String?)])
    func whatACallerIsTold(_ error: any Error, _ status: Int, _ retryAfter: String?) {
        let problem = Problem(telling: error)
        #expect(problem.kind.status.code == status)
        #expect(problem.headers[.retryAfter] == retryAfter)
        #expect(!problem.detail.contains("internal") && !problem.detail.contains("hunter2"))
    }

    @Test func aDatabaseThatIsAway() async throws {
        try await Serving.withoutDatabase { client in
            let lookup = try await client.send(.get, Serving.entitlements, secret: TestKey.read.secret)
            try expectProblem(lookup, "unavailable", status: 503)
            #expect(lookup.headers[.retryAfter] == "1")
            try expectProblem(try await client.send(.get, "/readyz"), "unavailable", status: 503)
            let alive = try await client.send(.get, "/healthz")
            #expect(alive.status == .ok && String(buffer: alive.body) == #"{"status":"alive"}"#)
        }
    }

    @Test func theDescriptionIsServed() async throws {
        let response = try await Serving.withoutDatabase { try await $0.send(.get, "/openapi.yaml") }
        let text = String(buffer: response.body)
        #expect(response.headers[.contentType] == "application/yaml" && text.hasPrefix("openapi: 3.1.0\n"))
        for path in [
            "/v1/apps/{bundle}/receipts", "/v1/apps/{bundle}/receipts/{id}",
            "/v1/apps/{bundle}/customers/{id}/entitlements", "/v1/notifications/{token}", "/metrics",
            "/healthz", "/readyz", "/openapi.yaml",
        ] {
            #expect(text.contains("\n  \(path):\n"), "\(path) is not described")
        }
    }
}
