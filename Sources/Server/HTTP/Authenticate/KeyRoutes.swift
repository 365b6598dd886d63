import Hummingbird
import Ledger

extension RouterGroup where Context == CallerContext {
    /// Returns the same routes for requests with a live API key.
    func behind(_ authenticator: APIKeyAuthenticator) -> RouterGroup<KeyContext> {
        group().add(middleware: authenticator).group(context: KeyContext.self)
    }
}

extension RouterGroup where Context == KeyContext {
    /// Returns routes whose paths name no app. They must not reveal any app but the key's. `query` lists the allowed
    /// query names.
    func ofAnyApp(needing scope: Scope, query: [String] = []) -> RouterGroup<KeyContext> {
        group().add(middleware: RequireScope(scope: scope)).add(middleware: RequireQuery(known: query))
    }

    /// Returns routes whose paths have the parameter `{bundle}`. A route gets its app only from the context. `query`
    /// lists the allowed query names.
    func ofApp(needing scope: Scope, query: [String] = []) -> RouterGroup<AppContext> {
        ofAnyApp(needing: scope, query: query).group(context: AppContext.self)
    }
}

/// Middleware that refuses a key with too little scope.
private struct RequireScope: RouterMiddleware {
    let scope: Scope

    func handle(
        _ request: Request, context: KeyContext, next: (Request, KeyContext) async throws -> Response
    ) async throws -> Response {
        guard context.key.scope.covers(scope) else {
            throw Problem(
                .forbidden, "The API key has the scope \(context.key.scope.rawValue); this needs \(scope.rawValue).",
                headers: [.wwwAuthenticate: "Bearer error=\"insufficient_scope\", scope=\"\(scope.rawValue)\""])
        }
        return try await next(request, context)
    }
}

/// Middleware that refuses a query with an unknown name.
private struct RequireQuery: RouterMiddleware {
    let known: [String]

    func handle(
        _ request: Request, context: KeyContext, next: (Request, KeyContext) async throws -> Response
    ) async throws -> Response {
        try request.requireQuery(known: known)
        return try await next(request, context)
    }
}
