import Hummingbird
import Ledger
import Subscriptions

/// A request that was let in, with the app it is about.
struct Visit: Sendable {
    let request: Request
    let parameters: Parameters
    let bundleID: BundleID
    /// The key that let it in.
    let key: APIKey
}

/// Lets in who brings a live API key of enough scope for the app in the path.
///
/// A route behind the gate cannot get at its app without passing it.
struct Gate: Sendable {
    let keys: KeyRing

    /// A route that answers only visits the gate let in; `path` has the parameter `{bundle}`.
    func route(
        _ method: HTTPRequest.Method, _ path: String, needs scope: Scope,
        _ answer: @escaping @Sendable (Visit) async throws -> Response
    ) -> Route {
        Route(method, path) { request, context in
            try await answer(visit(request, context.parameters, needs: scope))
        }
    }

    private func visit(_ request: Request, _ parameters: Parameters, needs scope: Scope) async throws -> Visit {
        let key = try await key(of: request)
        guard key.scope.covers(scope) else {
            throw Problem(
                .forbidden, "The API key has the scope \(key.scope.rawValue); this needs \(scope.rawValue).",
                headers: [.wwwAuthenticate: "Bearer error=\"insufficient_scope\", scope=\"\(scope.rawValue)\""])
        }
        let bundleID = BundleID(try parameters.decoded("bundle"))
        if let only = key.bundleID, only != bundleID {
            throw Problem(.forbidden, "The API key is for the app \(only) alone.")
        }
        return Visit(request: request, parameters: parameters, bundleID: bundleID, key: key)
    }

    /// RFC 6750, sections 2.1 and 3: the scheme's case does not matter; no error code when no key was sent.
    private func key(of request: Request) async throws -> APIKey {
        let parts = request.headers[values: .authorization].first?.split(separator: " ", maxSplits: 1) ?? []
        guard parts.count == 2, parts[0].lowercased() == "bearer" else {
            throw Problem(
                .unauthenticated, "Send an API key: `Authorization: Bearer KEY`; `perennial key create` makes one.",
                headers: [.wwwAuthenticate: "Bearer realm=\"perennial\""])
        }
        guard let key = try await keys.key(withSecret: String(parts[1])) else {
            throw Problem(
                .unauthenticated, "The API key is unknown or revoked; see `perennial key list`.",
                headers: [.wwwAuthenticate: "Bearer realm=\"perennial\", error=\"invalid_token\""])
        }
        return key
    }
}
