import HTTPTypes
import Hummingbird
import NIOCore
import Subscriptions
import Synchronization
import Tracking

/// Finds the live API key of a request, and what is left of its rate.
struct APIKeyAuthenticator: Sendable {
    let keys: KeyCache
    let limiter = RateLimiter<Int32>()

    fileprivate func knownKey(of request: Request) -> APIKey? { Self.given(by: request).flatMap(keys.known) }

    fileprivate func key(of request: Request) async throws -> APIKey {
        guard let given = Self.given(by: request), let secret = Self.secret(in: given) else { throw Problem.keyMissing }
        guard let key = try await keys.key(withSecret: secret, given: given) else {
            throw Problem(
                .unauthenticated, "The API key is unknown or revoked; see `perennial key list`.",
                headers: [.wwwAuthenticate: "Bearer realm=\"perennial\", error=\"invalid_token\""])
        }
        return key
    }

    /// The first authorization, as it came.
    private static func given(by request: Request) -> String? {
        request.headers.first { $0.name == .authorization }?.value
    }

    /// Returns the bearer token. The case of the scheme does not matter (RFC 6750, section 2.1).
    private static func secret(in given: String) -> String? {
        let parts = given.split(separator: " ", maxSplits: 1)
        return parts.count == 2 && parts[0].lowercased() == "bearer" ? String(parts[1]) : nil
    }
}

/// Answers a request with a live API key of enough scope that has requests left. The answer says how many are left.
///
/// It decides in one step all that a route with a key needs: a chain of middleware costs a lookup microseconds.
private struct KeyedResponder<Responder: HTTPResponder>: HTTPResponder
where Responder.Context: ChildRequestContext<CallerContext> {
    let responder: Responder
    let authenticator: APIKeyAuthenticator
    let scope: Scope
    let query: [String]

    nonisolated(nonsending) func respond(to request: Request, context: CallerContext) async throws -> Response {
        let key =
            if let known = authenticator.knownKey(of: request) { known } else {
                try await authenticator.key(of: request)
            }
        guard let standing = authenticator.limiter.take(of: key.id, at: key.rate) else {
            return try await responder.respond(to: request, context: try admit(request, key, in: context))
        }
        do {
            if let seconds = standing.waitSeconds {
                throw Problem.tooMany(
                    "The API key may make \(key.rate.perSecond) requests a second; `perennial key create --rate`.",
                    seconds)
            }
            var response = try await responder.respond(to: request, context: try admit(request, key, in: context))
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

    private func admit(_ request: Request, _ key: APIKey, in context: CallerContext) throws -> Responder.Context {
        guard key.scope.covers(scope) else {
            throw Problem(
                .forbidden, "The API key has the scope \(key.scope.rawValue); this needs \(scope.rawValue).",
                headers: [.wwwAuthenticate: "Bearer error=\"insufficient_scope\", scope=\"\(scope.rawValue)\""])
        }
        try request.requireQuery(known: query)
        var context = context
        context.key = key
        return try Responder.Context(context: context)
    }
}

extension Problem {
    /// The problem of a request without a key. Its challenge has no error code (RFC 6750, section 3).
    static let keyMissing = Problem(
        .unauthenticated, "Send an API key: `Authorization: Bearer KEY`; `perennial key create` makes one.",
        headers: [.wwwAuthenticate: "Bearer realm=\"perennial\""])
}

struct KeyedRoutes {
    let routes: RouterGroup<CallerContext>
    let authenticator: APIKeyAuthenticator

    /// Returns routes whose paths name no app, with the names of their query. They reveal no app but the key's.
    func ofAnyApp(needing scope: Scope, query: [String] = []) -> ScopedRoutes<KeyContext> {
        ScopedRoutes(routes: routes, authenticator: authenticator, scope: scope, query: query)
    }

    /// Returns routes whose paths have the parameter `{bundle}`. A route gets its app only from the context.
    func ofApp(needing scope: Scope, query: [String] = []) -> ScopedRoutes<AppContext> {
        ScopedRoutes(routes: routes, authenticator: authenticator, scope: scope, query: query)
    }
}

struct ScopedRoutes<Context: ChildRequestContext<CallerContext>>: RouterMethods {
    fileprivate let routes: RouterGroup<CallerContext>
    fileprivate let authenticator: APIKeyAuthenticator
    fileprivate let scope: Scope
    fileprivate let query: [String]

    @discardableResult
    func on<Responder: HTTPResponder>(
        _ path: RouterPath, method: HTTPRequest.Method, responder: Responder
    ) -> Self where Responder.Context == Context {
        routes.on(
            path, method: method,
            responder: KeyedResponder(
                responder: responder, authenticator: authenticator, scope: scope, query: query))
        return self
    }

    /// No route with a key has middleware of its own: `KeyedResponder` does without.
    func add(middleware: any MiddlewareProtocol<Request, Response, Context>) -> Self {
        preconditionFailure("Add middleware to the routes that were given a key.")
    }
}

/// The context of every request: the connection on which it came, and the key or the session once it is authenticated.
struct CallerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel
    /// The id that the answer names, and each line of the log.
    var requestID = ""
    /// The live API key or the running admin session of the request; nil before authentication and for routes without.
    var key: APIKey?
    var visit: AdminVisit?

    init(source: Source) {
        coreContext = .init(source: source)
        channel = source.channel
    }

    /// Returns the source address of a request, which came through `proxies` or directly.
    func source(of request: Request, behind proxies: TrustedProxies) -> SourceAddress {
        proxies.source(of: channel.remoteAddress, forwarded: request.headers[values: .forwardedFor])
    }
}

struct KeyContext: ChildRequestContext {
    var coreContext: CoreRequestContextStorage
    let key: APIKey

    init(context: CallerContext) throws {
        guard let key = context.key else { throw Problem.keyMissing }
        coreContext = context.coreContext
        self.key = key
    }
}

/// The context of a request about one app: the app that the path names in `{bundle}`.
struct AppContext: ChildRequestContext {
    var coreContext: CoreRequestContextStorage
    let key: APIKey
    let bundleID: BundleID

    /// Creates the context. Throws a problem when the key is for another app alone.
    init(context: CallerContext) throws {
        guard let key = context.key else { throw Problem.keyMissing }
        let bundleID = BundleID(try context.parameters.decoded("bundle"))
        if let only = key.bundleID, only != bundleID {
            throw Problem(.forbidden, "The API key is for the app \(only) alone.")
        }
        coreContext = context.coreContext
        self.key = key
        self.bundleID = bundleID
    }
}

/// A cache of recently used API keys, so that a lookup does not query the database for its key each time.
///
/// A revoked key is accepted for at most `secondsMax` seconds more. Unknown keys are not cached: a stream of invented keys
/// must not evict the real ones. The header that brought a key finds it, by a hash that is seeded in each process, so that
/// the time of a comparison tells nothing.
final class KeyCache: Sendable {
    static let secondsMax = 10
    static let entriesMax = 1000

    private let find: @Sendable (String) async throws -> APIKey?
    private let now: @Sendable () -> ContinuousClock.Instant
    private let known = Mutex(TTLCache<String, APIKey>(entriesMax: entriesMax, seconds: secondsMax))

    init(
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now },
        find: @escaping @Sendable (String) async throws -> APIKey?
    ) {
        self.now = now
        self.find = find
    }

    func known(given: String) -> APIKey? {
        let now = now()
        return known.withLock { $0.value(for: given, at: now) }
    }

    /// Returns the live key with the given secret, or nil. The header `given` brought it.
    func key(withSecret secret: String, given: String? = nil) async throws -> APIKey? {
        let given = given ?? "Bearer \(secret)"
        if let key = known(given: given) { return key }
        // The time is taken before the query, because the database's answer may be old when it arrives.
        let asked = now()
        guard Self.couldBeSecret(secret), let key = try await find(secret) else { return nil }
        known.withLock { $0.keep(key, for: given, at: asked) }
        return key
    }

    /// Returns whether the text has the form of our keys. Any other text is refused without a query.
    private static func couldBeSecret(_ text: String) -> Bool {
        let prefix = "perennial_"
        guard text.hasPrefix(prefix), text.utf8.count == prefix.utf8.count + 64 else { return false }
        return text.utf8.dropFirst(prefix.utf8.count).allSatisfy(\.isLowerHex)
    }
}

/// A cache with a lifetime and a maximum number of values. When it is full of live values, it starts again empty.
struct TTLCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    let entriesMax: Int
    let seconds: Int
    private(set) var entries: [Key: (value: Value, until: ContinuousClock.Instant)] = [:]

    func value(for key: Key, at now: ContinuousClock.Instant) -> Value? {
        guard let entry = entries[key], now < entry.until else { return nil }
        return entry.value
    }

    mutating func keep(_ value: Value, for key: Key, at now: ContinuousClock.Instant) {
        if entries[key] == nil { entries.makeRoom(below: entriesMax) { now < $0.until } }
        entries[key] = (value, now + .seconds(seconds))
    }
}

extension Dictionary {
    /// Makes room where there are `entriesMax`: keeps only the values that live, or none where that is not enough.
    mutating func makeRoom(below entriesMax: Int, lives: (Value) -> Bool) {
        guard count >= entriesMax else { return }
        self = filter { lives($0.value) }
        if count >= entriesMax { removeAll(keepingCapacity: true) }
    }
}

/// What is left of a caller's rate after one request.
struct RateStanding: Sendable, Hashable {
    /// The requests that may be made at once after a pause.
    let limit: Int
    /// The requests that may be made at once now.
    let remaining: Int
    /// Seconds until all of them may be made again without a further request.
    let resetSeconds: Int
    /// Seconds until the next request is admitted; nil where this one is.
    let waitSeconds: Double?

    /// The headers of an answer, as in the IETF draft `RateLimit header fields for HTTP`, version 7.
    var headers: HTTPFields {
        [.rateLimit: String(limit), .rateLimitRemaining: String(remaining), .rateLimitReset: String(resetSeconds)]
    }
}

/// A rate limiter of this process with one token bucket for each caller id.
final class RateLimiter<ID: Hashable & Sendable>: Sendable {
    private struct Bucket {
        var tokens: Double
        var at: ContinuousClock.Instant
    }

    /// The most callers counted. Beyond it, callers idle for a minute are forgotten, or all where that is not enough.
    static var callersMax: Int { 1000 }

    /// The longest wait that is reported, in seconds. A caller who waited that long may ask again in any case.
    static var waitSecondsMax: Double { 3_600 }

    private let now: @Sendable () -> ContinuousClock.Instant
    private let buckets = Mutex<[ID: Bucket]>([:])

    /// Creates a limiter; only tests replace the clock, with `now`.
    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.now = now
    }

    /// Takes one request of a caller. Returns nil when it is admitted, else the seconds to wait.
    func secondsToWait(of caller: ID, at rate: RequestRate) -> Double? {
        take(of: caller, at: rate)?.waitSeconds
    }

    /// Returns whether the next request of a caller would have to wait. Takes none.
    func isExhausted(_ caller: ID, at rate: RequestRate) -> Bool {
        let moment = now()
        return buckets.withLock { buckets in
            buckets[caller].map { $0.tokens + (moment - $0.at).seconds * rate.perSecond < 1 } ?? false
        }
    }

    /// Takes one request of a caller. Returns what is left; nil where the rate is unlimited.
    func take(of caller: ID, at rate: RequestRate) -> RateStanding? {
        guard rate.perSecond > 0 else { return nil }
        let moment = now()
        return buckets.withLock { buckets in
            var bucket = buckets[caller] ?? Bucket(tokens: rate.burst, at: moment)
            bucket.tokens = min(rate.burst, bucket.tokens + (moment - bucket.at).seconds * rate.perSecond)
            bucket.at = moment
            let missing = 1 - bucket.tokens
            if missing <= 0 { bucket.tokens -= 1 }
            // At any usual rate a bucket unused for a minute is full again, so that forgetting it changes nothing.
            if buckets[caller] == nil {
                buckets.makeRoom(below: Self.callersMax) { moment - $0.at < .seconds(60) }
            }
            buckets[caller] = bucket
            return RateStanding(
                limit: Int(rate.burst), remaining: Int(max(0, bucket.tokens)),
                resetSeconds: Int(
                    min((rate.burst - bucket.tokens) / rate.perSecond, Self.waitSecondsMax).rounded(.up)),
                waitSeconds: missing <= 0 ? nil : min(missing / rate.perSecond, Self.waitSecondsMax))
        }
    }
}
