import Hummingbird
import HummingbirdTesting
import Testing

@testable import Server

@Suite("A request needs an API key of its scope and app") struct APIKeyAuthenticatorTests {
    /// The keys that are let in: behind authentication the database is away, which answers 503, or the body is missing,
    /// which answers 400.
    @Test(
        "A key is let in where its scope and its app allow it",
        arguments: [
            (TestKey.read, "GET", Serving.entitlements, 503), (.write, "GET", Serving.entitlements, 503),
            (.admin, "GET", Serving.entitlements, 503), (.otherApp, "GET", Serving.entitlements, 403),
            (.unknown, "GET", Serving.entitlements, 401), (.read, "HEAD", Serving.entitlements, 503),
            (.unknown, "HEAD", Serving.entitlements, 401), (.read, "GET", Serving.receipts + "/1", 503),
            (.otherApp, "GET", Serving.receipts + "/1", 403), (.read, "POST", Serving.receipts, 403),
            (.write, "POST", Serving.receipts, 400), (.admin, "POST", Serving.receipts, 400),
            (.otherApp, "POST", Serving.receipts, 403), (.unknown, "POST", Serving.receipts, 401),
            (.read, "GET", "/v1/apps/com.example.ap%70/customers/kim/entitlements", 503),
            (.otherApp, "GET", "//v1/apps/com.example.app//customers/kim/entitlements", 404),
            (.otherApp, "GET", "//v1/apps/com.example.app/customers/kim/entitlements", 403),
        ])
    func whoIsLetIn(_ key: TestKey, _ method: String, _ path: String, _ status: Int) async throws {
        let method = try #require(HTTPRequest.Method(rawValue: method))
        let response = try await Serving.withoutDatabase { client in
            try await client.send(method, path, secret: key.secret)
        }
        #expect(response.status.code == status)
        #expect((response.headers[.wwwAuthenticate] != nil) == (status == 401 || status == 403 && key != .otherApp))
    }

    @Test(
        "What is no key is refused",
        arguments: [
            nil, "", "Bearer", "Bearer ", "Basic a2ltOmtpbQ==", TestKey.read.secret, "Bearer secret",
            "Bearer \(TestKey.read.secret)0", "Bearer \(TestKey.read.secret.uppercased())",
            "Bearer \(TestKey.unknown.secret)",
        ])
    func whatIsNoKey(_ authorization: String?) async throws {
        try await Serving.withoutDatabase { client in
            for path in [Serving.entitlements, Serving.receipts + "/1"] {
                let headers: HTTPFields = authorization.map { [.authorization: $0] } ?? [:]
                let response = try await client.send(.get, path, headers: headers)
                try expectProblem(response, "unauthenticated", status: 401)
                #expect(response.headers[.wwwAuthenticate]?.hasPrefix("Bearer realm=\"perennial\"") == true)
            }
        }
    }

    /// The key comes first, then its scope, then the names of the query, and the app last.
    @Test(
        "The first refusal counts",
        arguments: [
            (TestKey.unknown, "POST", Serving.receipts, "unauthenticated", 401),
            (.read, "POST", Serving.receipts, "forbidden", 403),
            (.otherApp, "POST", Serving.receipts, "invalid", 400),
            (.otherApp, "GET", Serving.entitlements, "invalid", 400),
            (.unknown, "PUT", Serving.receipts, "method-not-allowed", 405),
        ])
    func theFirstRefusalCounts(_ key: TestKey, _ method: String, _ path: String, _ kind: String, _ status: Int)
        async throws
    {
        let method = try #require(HTTPRequest.Method(rawValue: method))
        let response = try await Serving.withoutDatabase { client in
            try await client.send(method, path + "?nonsense=1", secret: key.secret)
        }
        try expectProblem(response, kind, status: status)
    }

    @Test("The case of the scheme does not matter")
    func theSchemesCaseDoesNotMatter() async throws {
        let response = try await Serving.withoutDatabase { client in
            try await client.send(
                .post, Serving.receipts, headers: [.authorization: "bEARER \(TestKey.write.secret)"])
        }
        #expect(response.status == .badRequest)
    }
}
