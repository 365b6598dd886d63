import Hummingbird
import Ledger
import Subscriptions

/// Middleware that admits a request with a live API key that has requests left, and notes the key in the context. Its
/// answers say how many are left.
struct APIKeyAuthenticator: RouterMiddleware {
    let keys: KeyCache
    let limiter = RateLimiter<Int32>()

    func handle(
        _ request: Request, context: CallerContext, next: (Request, CallerContext) async throws -> Response
    ) async throws -> Response {
        let key = try await key(of: request)
        var context = context
        context.key = key
        guard let standing = limiter.take(of: key.id, at: key.rate) else { return try await next(request, context) }
        do {
            try admit(key, standing)
            var response = try await next(request, context)
            response.headers.append(contentsOf: standing.headers)
            return response
        } catch {
            var problem = Problem(telling: error)
            // A failure of the server goes on as it is, because the log shows its cause.
            guard problem.kind.status.kind == .clientError else { throw error }
            problem.headers.append(contentsOf: standing.headers)
            throw problem
        }
    }

    private func admit(_ key: APIKey, _ standing: RateStanding) throws {
        guard let seconds = standing.waitSeconds else { return }
        throw Problem(
            .tooMany, "The API key may make \(key.rate.perSecond) requests a second; `perennial key create --rate`.",
            headers: [.retryAfter: String(Int(seconds.rounded(.up)))])
    }

    /// Returns the bearer token. The case of the scheme does not matter (RFC 6750, section 2.1).
    private static func secret(in headers: HTTPFields) -> String? {
        let parts = headers[values: .authorization].first?.split(separator: " ", maxSplits: 1) ?? []
        return parts.count == 2 && parts[0].lowercased() == "bearer" ? String(parts[1]) : nil
    }

    /// Returns the key of a request, or throws a problem.
    private func key(of request: Request) async throws -> APIKey {
        guard let secret = Self.secret(in: request.headers) else { throw Problem.keyMissing }
        guard let key = try await keys.key(withSecret: secret) else {
            throw Problem(
                .unauthenticated, "The API key is unknown or revoked; see `perennial key list`.",
                headers: [.wwwAuthenticate: "Bearer realm=\"perennial\", error=\"invalid_token\""])
        }
        return key
    }
}

extension Problem {
    /// The problem of a request without a key. Its challenge has no error code (RFC 6750, section 3).
    static let keyMissing = Problem(
        .unauthenticated, "Send an API key: `Authorization: Bearer KEY`; `perennial key create` makes one.",
        headers: [.wwwAuthenticate: "Bearer realm=\"perennial\""])
}
