import AppStore
import Hummingbird
import HummingbirdTesting
import Postgres
import Testing
import Tracking

@testable import Server

private struct Surprise: Error {
    let secret = "hunter2"
}

@Suite("Every refusal is a problem that says what to do") struct ProblemTests {
    @Test(
        "An unknown path is a problem",
        arguments: ["/v1", "/v1/apps", "/v1/apps/com.example.app", "/v2/apps/a/receipts", "/receipts"])
    func noSuchPath(_ path: String) async throws {
        let response = try await Serving.withoutDatabase { try await $0.send(.get, path) }
        try expectProblem(response, "not-found", status: 404)
    }

    /// A customer without an id is no customer, and not one called `entitlements`.
    @Test(
        "A path with an empty part is a problem",
        arguments: [
            "/v1/apps/com.example.app/customers//entitlements", "/v1/apps//customers/kim",
            "/v1//apps/com.example.app/receipts/1",
            "/v1/apps/com.example.app/receipts//1", "/v1/apps/com.example.app/receipts/", "//v1/events/",
        ])
    func aPathWithAnEmptyPart(_ path: String) async throws {
        let response = try await Serving.withoutDatabase { try await $0.send(.get, path, secret: TestKey.read.secret) }
        try expectProblem(response, "not-found", status: 404)
    }

    @Test(
        "An unknown method is a problem",
        arguments: [
            ("PUT", Serving.receipts, "GET, HEAD, POST, OPTIONS"),
            ("TRACE", Serving.receipts, "GET, HEAD, POST, OPTIONS"),
            ("QUERY", "/healthz", "GET, HEAD, OPTIONS"),
            ("DELETE", Serving.receipts + "/1", "GET, HEAD, OPTIONS"),
            ("POST", Serving.entitlements, "GET, HEAD, OPTIONS"), ("PATCH", "/healthz", "GET, HEAD, OPTIONS"),
            ("POST", "/readyz", "GET, HEAD, OPTIONS"), ("PUT", "/v1/events", "GET, HEAD, OPTIONS"),
            ("GET", "/v1/apps/com.example.app/entitlements:batch", "POST, OPTIONS"),
        ])
    func noSuchMethod(_ method: String, _ path: String, _ allow: String) async throws {
        let method = try #require(HTTPRequest.Method(rawValue: method))
        let response = try await Serving.withoutDatabase { try await $0.send(method, path) }
        try expectProblem(response, "method-not-allowed", status: 405)
        #expect(response.headers[.allow] == allow)
    }

    @Test(
        "Each path says which methods it answers",
        arguments: [
            (Serving.receipts, "GET, HEAD, POST, OPTIONS"), (Serving.entitlements, "GET, HEAD, OPTIONS"),
            ("/openapi.yaml", "GET, HEAD, OPTIONS"),
        ])
    func whatIsAnsweredHere(_ path: String, _ allow: String) async throws {
        let response = try await Serving.withoutDatabase { try await $0.send(.options, path) }
        #expect(response.status == .noContent && response.headers[.allow] == allow)
        #expect(response.body.readableBytes == 0)
    }

    /// An answer carries the id its caller gave, or one of ours; the problem tells the same.
    @Test(
        "A request keeps a good id and gets a new one otherwise",
        arguments: [
            ("abc-123", true), ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", true), ("", false),
            ("two words", false), (String(repeating: "x", count: 129), false), ("é", false), (nil, false),
        ])
    func whatARequestIsCalled(_ given: String?, _ isKept: Bool) async throws {
        let headers: HTTPFields = given.map { [.requestID: $0] } ?? [:]
        try await Serving.withoutDatabase { client in
            let alive = try await client.send(.get, "/healthz", headers: headers)
            let id = try #require(alive.headers[.requestID])
            #expect((id == given) == isKept && !id.isEmpty)
            let problem = try await client.send(.get, "/nowhere", headers: headers)
            #expect(try AnswerBody(problem).text("request_id") == problem.headers[.requestID])
            #expect((problem.headers[.requestID] == given) == isKept)
        }
    }

    @Test("Every kind is whole", arguments: Problem.Kind.allCases)
    func everyKindIsWhole(_ kind: Problem.Kind) {
        #expect((400..<600).contains(kind.status.code))
        #expect(kind.title.first?.isUppercase == true && kind.rawValue.allSatisfy { $0.isLowercase || $0 == "-" })
    }

    @Test(
        "A problem has no internal details",
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
            (LedgerError(.exhausted(retryAfterSeconds: 7), "Enough."), 429, "7"),
            (LedgerError(.exists, "There."), 409, nil), (LedgerError(.invalid, "Bad."), 400, nil),
            (LedgerError(.notFound, "Gone."), 404, nil), (ReceiptDataError.empty, 422, nil),
            (HTTPError(.notFound), 404, nil), (HTTPError(.badRequest), 400, nil), (Surprise(), 500, nil),
        ] as [(any Error, Int, String?)])
    func whatACallerIsTold(
        _ error: any Error, _ status: Int, _ retryAfter: String?
    ) {
        let problem = Problem(telling: error)
        #expect(problem.kind.status.code == status)
        #expect(problem.headers[.retryAfter] == retryAfter)
        #expect(!problem.detail.contains("internal") && !problem.detail.contains("hunter2"))
    }

    @Test("A database that is away is a problem")
    func aDatabaseThatIsAway() async throws {
        try await Serving.withoutDatabase { client in
            let lookup = try await client.send(.get, Serving.entitlements, secret: TestKey.read.secret)
            try expectProblem(lookup, "unavailable", status: 503)
            #expect(lookup.headers[.retryAfter] == "1")
            try expectProblem(try await client.send(.get, "/readyz"), "unavailable", status: 503)
            let alive = try await client.send(.get, "/healthz")
            #expect(alive.status == .ok && String(buffer: alive.body) == #"{"status":"alive"}"#)
        }
    }

    @Test("The description is served")
    func theDescriptionIsServed() async throws {
        let response = try await Serving.withoutDatabase { try await $0.send(.get, "/openapi.yaml") }
        let text = String(buffer: response.body)
        #expect(response.headers[.contentType] == "application/yaml" && text.hasPrefix("openapi: 3.1.0\n"))
        for path in [
            "/v1/apps/{bundle}/receipts", "/v1/apps/{bundle}/receipts/{id}",
            "/v1/apps/{bundle}/customers/{id}/entitlements", "/v1/notifications/{token}", "/metrics",
            "/healthz", "/readyz", "/openapi.yaml", "/v1/apps/{bundle}/orders", "/v1/apps/{bundle}/orders/{id}",
            "/v1/apps/{bundle}/customers/{id}/orders", "/v1/orders/{id}/state", "/v1/apps/{bundle}/deliveries",
            "/v1/apps/{bundle}/deliveries:ack", "/v1/apps/{bundle}/deliveries/{id}:ack",
            "/v1/apps/{bundle}/deliveries/{id}:skip", "/v1/apps/{bundle}/products", "/v1/apps/{bundle}/offers:sign",
        ] {
            #expect(text.contains("\n  \(path):\n"), "\(path) is not described")
        }
    }
}
