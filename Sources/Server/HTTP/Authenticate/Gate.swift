import Hummingbird
import Ledger
import Subscriptions

/// An authorized request.
struct Visit: Sendable {
    let request: Request
    let parameters: Parameters
    let key: APIKey
}

/// An authorized request about one app.
struct AppVisit: Sendable {
    let request: Request
    let parameters: Parameters
    let key: APIKey
    let bundleID: BundleID
}

/// The authorization of requests: it admits a live API key that has enough scope for the app in the path and requests
/// left.
///
/// A route behind the gate receives its app only through it.
struct Gate: Sendable {
    let keys: KeyRing
    let limiter = RateLimiter<Int32>()

    /// Returns a route that answers only authorized requests. `path` has the parameter `{bundle}`, and `query` lists
    /// the allowed query names.
    func route(
        _ method: HTTPRequest.Method, _ path: String, needs scope: Scope, query: [String] = [],
        _ answer: @escaping @Sendable (AppVisit) async throws -> Response
    ) -> Route {
        route(method, path, ofAnyApp: scope, query: query) { visit in
            let bundleID = BundleID(try visit.parameters.decoded("bundle"))
            if let only = visit.key.bundleID, only != bundleID {
                throw Problem(.forbidden, "The API key is for the app \(only) alone.")
            }
            return try await answer(
                AppVisit(request: visit.request, parameters: visit.parameters, key: visit.key, bundleID: bundleID))
        }
    }

    /// Returns the same for a path that names no app. `answer` must not reveal any app but the key's.
    func route(
        _ method: HTTPRequest.Method, _ path: String, ofAnyApp scope: Scope, query: [String] = [],
        _ answer: @escaping @Sendable (Visit) async throws -> Response
    ) -> Route {
        Route(method, path) { request, context in
            let key = try await key(of: request)
            if let seconds = limiter.secondsToWait(of: key.id, at: key.rate) {
                throw Problem(
                    .tooMany,
                    "The API key may make \(key.rate.perSecond) requests a second; `perennial key create --rate`.",
                    headers: [.retryAfter: String(Int(seconds.rounded(.up)))])
            }
            guard key.scope.covers(scope) else {
                throw Problem(
                    .forbidden, "The API key has the scope \(key.scope.rawValue); this needs \(scope.rawValue).",
                    headers: [.wwwAuthenticate: "Bearer error=\"insufficient_scope\", scope=\"\(scope.rawValue)\""])
            }
            try request.requireQuery(known: query)
            let response = try await answer(Visit(request: request, parameters: context.parameters, key: key))
            if scope != .read { await outlastMemories() }
            return response
        }
    }

    /// Waits until every server's lookups show a write, so that a caller who got its response can read it anywhere.
    private func outlastMemories() async {
        // Cancelled only when no caller waits for the response any more.
        try? await Task.sleep(for: .milliseconds(RightsLookup.behindMillisecondsMax))
    }

    /// Returns the key of a request if it is known without a query and covers `scope` for the app.
    func knownKey(in headers: HTTPFields, for bundleID: BundleID, needs scope: Scope) -> APIKey? {
        guard let secret = Self.secret(in: headers), let key = keys.knownKey(withSecret: secret),
            key.scope.covers(scope), key.bundleID == nil || key.bundleID == bundleID
        else { return nil }
        return key
    }

    /// Takes one of the requests that a key has left. Returns false when none is left.
    func takeRequest(of key: APIKey) -> Bool { limiter.secondsToWait(of: key.id, at: key.rate) == nil }

    /// Returns the bearer token. The case of the scheme does not matter (RFC 6750, section 2.1).
    private static func secret(in headers: HTTPFields) -> String? {
        let parts = headers[values: .authorization].first?.split(separator: " ", maxSplits: 1) ?? []
        return parts.count == 2 && parts[0].lowercased() == "bearer" ? String(parts[1]) : nil
    }

    /// Returns the key of a request, or throws a problem, which has no error code when no key was sent (RFC 6750,
    /// section 3).
    private func key(of request: Request) async throws -> APIKey {
        guard let secret = Self.secret(in: request.headers) else {
            throw Problem(
                .unauthenticated, "Send an API key: `Authorization: Bearer KEY`; `perennial key create` makes one.",
                headers: [.wwwAuthenticate: "Bearer realm=\"perennial\""])
        }
        guard let key = try await keys.key(withSecret: secret) else {
            throw Problem(
                .unauthenticated, "The API key is unknown or revoked; see `perennial key list`.",
                headers: [.wwwAuthenticate: "Bearer realm=\"perennial\", error=\"invalid_token\""])
        }
        return key
    }
}
