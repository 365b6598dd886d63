import AppStore
import Hummingbird
import Ledger
import Metrics
import Subscriptions
import Tracking

/// `POST /v1/notifications/{token}`: stores Apple's notification; a worker applies a verified one.
///
/// One that cannot be verified decides nothing: a caller who knows the address can at most make us ask Apple once a
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
    /// How many unknown certificate chains of an app each process verifies: a chain costs much more than a signature,
    /// and Apple has a few.
    static let chainRate = RequestRate(perSecond: 20, burst: 20)

    let tracker: Tracker
    let metrics: MetricsRegistry
    private let limits: ServerLimits
    private let limiter: RateLimiter<Int32>
    private let chainLimiter = RateLimiter<Int32>()

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
            let body = Array(try await limits.body(of: request).readableBytesView)
            let notification = try UnverifiedNotification(notification: body)
            let kept =
                switch notification.version {
                case .one: try await keepVersionOne(notification, body, for: app)
                case .two: try await keepVersionTwo(notification, body, for: app)
                }
            count(notification, about: app, kept)
            return kept.response
        }
    }

    /// Verifies a notification of version 2 and stores it: as facts to apply, or else as a reason to check soon.
    private func keepVersionTwo(
        _ notification: UnverifiedNotification, _ body: [UInt8], for app: NotifiedApp
    ) async throws -> KeptNotificationAnswer {
        let received: ReceivedNotification
        do {
            received = try await tracker.receive(SignedText.inBody(body), for: app) { [chainLimiter] in
                chainLimiter.secondsToWait(of: app.id, at: Self.chainRate) == nil
            }
        } catch is SignedTextRefusal {
            throw Problem.unavailable(
                "Too many unknown certificates come at once; send it again.", retryAfterSeconds: 1)
        }
        switch received {
        case .verified(let verified):
            return KeptNotificationAnswer(.verified, try await tracker.ledger.intake.keep(verified, for: app))
        case .unverified(let reason):
            let effect = try await tracker.ledger.intake.keep(notification, for: app, unverified: reason)
            return KeptNotificationAnswer(.unverified, effect, reason: reason)
        }
    }

    /// Stores a notification of version 1, which is a hint unless its password is another one than the app's secret.
    private func keepVersionOne(
        _ notification: UnverifiedNotification, _ body: [UInt8], for app: NotifiedApp
    ) async throws -> KeptNotificationAnswer {
        let fields = VersionOneFields(body)
        let intake = tracker.ledger.intake
        let verdict = try await tracker.ledger.apps.checkPassword(fields?.password, of: app.bundleID)
        if verdict == .wrong {
            try await intake.keep(notification, for: app, because: .wrongPassword)
            return KeptNotificationAnswer(
                .unverified, .wrongPassword, reason: "Its password is not the app's shared secret.")
        }
        if verdict == .right {
            return KeptNotificationAnswer(.password, try await intake.keep(notification, for: app))
        }
        return KeptNotificationAnswer(
            .unverified, try await intake.keep(notification, for: app),
            reason: "Notifications of version 1 are not signed.")
    }

    private func count(
        _ notification: UnverifiedNotification, about app: NotifiedApp, _ kept: KeptNotificationAnswer
    ) {
        let labels = [
            ("app", app.bundleID.text), ("version", "\(notification.version.rawValue)"),
            ("effect", kept.effect.rawValue),
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
