import AppStore
import Foundation
import Hummingbird
import JSON
import Metrics
import Subscriptions
import Tracking

/// `POST /v1/notifications/{token}`: stores Apple's notification, which is a reason to ask Apple soon.
///
/// One that cannot be verified decides nothing: a caller who knows the address can at most make us ask Apple once a
/// minute about a subscription that we ask about anyway. Docs: `docs/notifications.md`.
struct PostNotification: Sendable {
    /// The largest body, in bytes. Version 1 contains up to 100 rows and a whole receipt, and stays far below this.
    static let bodyBytesMax = 1024 * 1024
    /// How long a body may take to arrive, in seconds. Apple's arrive within a second or two.
    static let bodySecondsMax = 10.0
    /// The rate limit of an app in each process: far more than Apple sends, and little enough for the database.
    static let rate = RequestRate(perSecond: 200, burst: 2000)
    /// The unknown certificate chains of an app that each process verifies: one costs much, and Apple has a few.
    static let chainRate = RequestRate(perSecond: 20, burst: 20)

    let tracker: Tracker
    let metrics: MetricsRegistry
    let limits: ServerLimits
    var limiter = RateLimiter<Int32>()
    private let chainLimiter = RateLimiter<Int32>()

    func addRoute(to routes: some RouterMethods<CallerContext>) {
        let limits = limits.narrowed(bytesMax: Self.bodyBytesMax, secondsMax: Self.bodySecondsMax)
        routes.post("/v1/notifications/{token}") { request, context in
            let app = try await app(at: try context.parameters.decoded("token"))
            if let seconds = limiter.secondsToWait(of: app.id, at: Self.rate) {
                throw Problem.tooMany(
                    "The server accepts at most \(Int(Self.rate.perSecond)) notifications a second for an app.",
                    seconds)
            }
            let body = Array(try await limits.body(of: request).readableBytesView)
            let notification = try UnverifiedNotification(notification: body)
            let kept =
                switch notification.version {
                case .one: try await keepVersionOne(notification, body, for: app)
                case .two: try await keepVersionTwo(notification, body, for: app)
                }
            let version = "\(notification.version.rawValue)"
            let labels = [("app", app.bundleID.text), ("version", version), ("effect", kept.effect.rawValue)]
            metrics.counter(.notifications, labels).increment()
            return Response([
                "verification": .string(kept.verification.rawValue), "effect": .string(kept.effect.rawValue),
                "reason": .optional(kept.reason),
            ])
        }
    }

    /// How far a notification is believed: Apple signed it, it has the app's shared secret, or nothing shows that it is
    /// Apple's.
    private enum Verification: String { case verified, password, unverified }

    private typealias Kept = (verification: Verification, effect: NotificationEffect, reason: String?)

    private func keepVersionTwo(
        _ notification: UnverifiedNotification, _ body: [UInt8], for app: NotifiedApp
    ) async throws -> Kept {
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
        case .verified(let verified): return (.verified, try await tracker.ledger.intake.keep(verified, for: app), nil)
        case .unverified(let reason):
            let effect = try await tracker.ledger.intake.keep(notification, for: app, unverified: reason)
            return (.unverified, effect, reason)
        }
    }

    /// Stores a notification of version 1, which is a hint unless its password is another one than the app's secret.
    private func keepVersionOne(
        _ notification: UnverifiedNotification, _ body: [UInt8], for app: NotifiedApp
    ) async throws -> Kept {
        let intake = tracker.ledger.intake
        let verdict = try await tracker.ledger.apps.checkPassword(Self.password(in: body), of: app.bundleID)
        guard verdict != .wrong else {
            try await intake.keep(notification, for: app, because: .wrongPassword)
            return (.unverified, .wrongPassword, "Its password is not the app's shared secret.")
        }
        let effect = try await intake.keep(notification, for: app)
        return verdict == .right
            ? (.password, effect, nil) : (.unverified, effect, "Notifications of version 1 are not signed.")
    }

    private static let passwordBytesMax = 256

    /// Returns the `password` of a notification of version 1, if any, with its white space. It is never stored.
    private static func password(in body: [UInt8]) -> String? {
        guard let document = JSONDocument(object: body), case .string(let text) = JSONValue(document)["password"],
            text.utf8.count <= passwordBytesMax
        else { return nil }
        return text
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

extension UnverifiedNotification {
    /// The longest word or id, in bytes. Apple's own words are much shorter, and a longer one is ignored.
    fileprivate static let wordBytesMax = 64

    /// Reads the body of a notification. Throws a problem when it does not have the form of Apple's notifications:
    /// https://developer.apple.com/documentation/appstoreservernotifications (`responseBodyV2`, `responseBodyV1`).
    init(notification bytes: [UInt8]) throws(Problem) {
        // PostgreSQL stores the text unchanged, so it must be JSON to PostgreSQL: UTF-8 without a byte order mark.
        guard let text = String(validating: bytes, as: UTF8.self), text.first != "\u{FEFF}",
            let document = JSONDocument(object: bytes), !document.holdsControlCharacters,
            let body = JSONObject(document)
        else { throw Problem(.invalid, "The body is not a JSON object.") }
        // Only version 1 contains Apple's `password`, but any body that has one is stored without it.
        let kept = JSONValue(document).withoutPasswords ?? text
        if let payload = body.text("signedPayload", bytesMax: bytes.count) {
            try self.init(signedPayload: payload, body: kept)
        } else {
            try self.init(unsigned: body, kept: kept)
        }
    }

    /// Reads version 2. The signature is not verified, because the content neither grants nor ends anything.
    private init(signedPayload: String, body: String) throws(Problem) {
        guard let payload = JSONObject(payloadOf: signedPayload), let kind = payload.word("notificationType") else {
            throw Problem(.invalid, "The body's signedPayload is not a signed notification of version 2.")
        }
        let data = payload.object("data") ?? payload.object("summary") ?? payload.object("appData")
        let transaction = data?.signed("signedTransactionInfo")
        let renewal = data?.signed("signedRenewalInfo")
        let environment = data?.word("environment") ?? transaction?.word("environment") ?? renewal?.word("environment")
        self.init(
            version: .two, kind: kind, subkind: payload.word("subtype"), appleID: payload.word("notificationUUID"),
            bundleID: data?.text("bundleId", bytesMax: 255).map { BundleID($0) },
            environment: environment.flatMap(StoreEnvironment.init(rawValue:)),
            originalTransactionID: (transaction?.word("originalTransactionId")
                ?? renewal?.word("originalTransactionId")).map { OriginalTransactionID($0) },
            body: body)
    }

    /// Reads version 1. The subscription is the one named at the top level, else the one of the newest row.
    private init(unsigned body: JSONObject, kept: String) throws(Problem) {
        guard let kind = body.word("notification_type") else {
            throw Problem(.invalid, "The body has neither signedPayload nor notification_type.")
        }
        let unified = body.object("unified_receipt")
        let named =
            body.word("original_transaction_id") ?? unified?.newestRow?.word("original_transaction_id")
            ?? body.object("latest_receipt_info")?.word("original_transaction_id")
            ?? body.object("latest_expired_receipt_info")?.word("original_transaction_id")
        self.init(
            version: .one, kind: kind, bundleID: body.text("bid", bytesMax: 255).map { BundleID($0) },
            environment: (body.word("environment") ?? unified?.word("environment")).flatMap(StoreEnvironment.init(v1:)),
            originalTransactionID: named.map { OriginalTransactionID($0) },
            body: kept)
    }
}

extension StoreEnvironment {
    /// Reads the environment of version 1, which says PROD where everything else says Production.
    fileprivate init?(v1 word: String) {
        switch word.lowercased() {
        case "prod", "production": self = .production
        case "sandbox": self = .sandbox
        default: return nil
        }
    }
}

extension JSONObject {
    /// Returns text or a whole number of a notification's body; nil when it is empty, too long, or has NUL, where PostgreSQL's text would end.
    fileprivate func text(_ name: String, bytesMax: Int) -> String? {
        text(name).flatMap { $0.utf8.count <= bytesMax && !$0.utf8.contains(0) ? $0 : nil }
    }

    /// Returns a word or an id: text or a whole number of at most `wordBytesMax` bytes.
    fileprivate func word(_ name: String) -> String? { text(name, bytesMax: UnverifiedNotification.wordBytesMax) }

    fileprivate func signed(_ name: String) -> JSONObject? { text(name).flatMap(JSONObject.init(payloadOf:)) }

    /// Reads the payload of a JSON Web Signature in compact form without verification; nil for anything else.
    fileprivate init?(payloadOf signed: String) {
        guard let payload = ShortText.payload(of: Array(signed.utf8)) else { return nil }
        self.init(payload)
    }

    fileprivate var newestRow: JSONObject? {
        objects("latest_receipt_info").max { left, right in
            (left.digits("purchase_date_ms") ?? 0) < (right.digits("purchase_date_ms") ?? 0)
        }
    }
}

extension JSONValue {
    /// The object as JSON text with every `password` redacted, at any depth; nil when there is none.
    fileprivate var withoutPasswords: String? {
        var found = false
        let redacted = withoutPasswords(&found)
        return found ? redacted.rendered() : nil
    }

    private func withoutPasswords(_ found: inout Bool) -> JSONValue {
        switch self {
        case .null, .bool, .integer, .number, .string: return self
        case .array(let values): return .array(values.map { $0.withoutPasswords(&found) })
        case .object(var members):
            for (name, inner) in members {
                let isSecret = name.lowercased() == "password"
                found = found || isSecret
                members[name] = isSecret ? "redacted" : inner.withoutPasswords(&found)
            }
            return .object(members)
        }
    }
}
