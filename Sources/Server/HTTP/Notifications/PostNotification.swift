import Hummingbird
import Ledger
import Metrics
import Subscriptions
import Tracking

/// `POST /v1/notifications/{token}`: stores Apple's notification and brings the next check of its subscription forward.
///
/// The body is not verified, so it decides nothing. A caller who knows the address can at most make us ask Apple once a
/// minute about a subscription that we ask about anyway. Docs: `docs/notifications.md`.
struct PostNotification: Sendable {
    /// The largest body, in bytes. Version 1 contains up to 100 rows and a whole receipt; Apple's bodies stay far below
    /// this.
    static let bodyBytesMax = 1024 * 1024
    /// How long a body may take to arrive, in seconds. Apple's arrive within a second or two; a slower one is not
    /// Apple's.
    static let bodySecondsMax = 10.0
    /// The rate limit of an app in each process: far more than Apple sends, and little enough for the database.
    static let rate = RequestRate(perSecond: 200, burst: 2000)

    let tracker: Tracker
    let metrics: MetricsRegistry
    private let limits: ServerLimits
    private let limiter: RateLimiter<Int32>

    init(
        tracker: Tracker, metrics: MetricsRegistry, limits: ServerLimits, limiter: RateLimiter<Int32> = RateLimiter()
    ) {
        self.metrics = metrics
        self.tracker = tracker
        self.limiter = limiter
        var limits = limits
        limits.bodyBytesMax = min(limits.bodyBytesMax, Self.bodyBytesMax)
        limits.bodySecondsMax = min(limits.bodySecondsMax, Self.bodySecondsMax)
        self.limits = limits
    }

    func addRoute(to routes: some RouterMethods<CallerContext>) {
        routes.post("/v1/notifications/{token}") { request, context in
            let app = try await app(at: try context.parameters.decoded("token"))
            if let seconds = limiter.secondsToWait(of: app.id, at: Self.rate) {
                throw Problem(
                    .tooMany,
                    "The server accepts at most \(Int(Self.rate.perSecond)) notifications a second for an app.",
                    headers: [.retryAfter: String(Int(seconds.rounded(.up)))])
            }
            let body = try await limits.body(of: request)
            let notification = try UnverifiedNotification(notification: Array(body.readableBytesView))
            let effect = try await tracker.ledger.intake.keep(notification, for: app)
            count(notification, about: app, effect)
            return Response(["effect": .string(effect.rawValue)])
        }
    }

    private func count(_ notification: UnverifiedNotification, about app: NotifiedApp, _ effect: NotificationEffect) {
        let labels = [
            ("app", app.bundleID.text), ("version", "\(notification.version.rawValue)"), ("effect", effect.rawValue),
        ]
        metrics.counter(.notifications, labels).increment()
    }

    /// Returns the app with the token. An unknown token is refused before the body is read.
    private func app(at token: String) async throws -> NotifiedApp {
        guard let token = NotificationToken(token), let app = try await tracker.ledger.apps.notifiedApp(at: token)
        else {
            throw Problem(
                .notFound, "No app has its notifications sent here; `perennial app notifications` makes an address.")
        }
        return app
    }
}
