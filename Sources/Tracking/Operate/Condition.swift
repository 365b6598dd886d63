package import Logging
package import Subscriptions
import Synchronization

/// A problem that lasts for a while. Each is logged once when it begins and once when it ends.
package enum Condition: Hashable, Sendable {
    /// PostgreSQL does not answer.
    case database
    /// The hot standby for lookups is not asked, or after the primary.
    case standby(StandbyStanding)
    /// Apple answers about no app, so all of them wait.
    case appStore
    /// Calls about an app get no answer.
    case noAnswers(BundleID)
    /// An app's checks are paused.
    case pause(BundleID)
    /// An app's calls are slower than its limit allows.
    case slowness(BundleID)
    /// Apple refuses an app's once-verified receipts in bulk.
    case incident(BundleID)
    /// Apple refuses an app's shared secret in an environment; nil: about a receipt, before it accepted it anywhere.
    case wrongSecret(BundleID, StoreEnvironment?)
    /// Apple accepts only the secret from before the last rotation.
    case previousSecret(BundleID)
    /// An app's sealed secret does not open.
    case sealedSecret(BundleID)
    /// An app's key for the Server API is missing or does not open.
    case serverKey(BundleID)
    /// The Server API refuses an app's calls, or its answers cannot be used.
    case serverAPI(BundleID)
    /// Apple's clock is ahead of the database's.
    case clock
    /// Rows of Apple's answers about an app cannot be read.
    case unreadableRows(BundleID)
    /// The answer about a receipt could not be written.
    case unsettled(ReceiptID)
    /// A job of this process fails, such as `claim receipts`.
    case work(String)

    /// What the log says of it. It is over when it has been gone for `calmSeconds`: an intermittent failure is one problem.
    var traits: (name: String, app: BundleID?, level: Logger.Level, calmSeconds: Double) {
        switch self {
        case .database: ("database", nil, .error, 0)
        case .standby: ("standby", nil, .warning, 60)
        case .appStore: ("app_store", nil, .warning, 60)
        case .noAnswers(let app): ("no_answers", app, .warning, 60)
        case .pause(let app): ("pause", app, .warning, 60)
        case .slowness(let app): ("slowness", app, .warning, 60)
        case .incident(let app): ("incident", app, .warning, 0)
        case .wrongSecret(let app, _): ("wrong_secret", app, .error, 0)
        case .previousSecret(let app): ("previous_secret", app, .warning, 0)
        case .sealedSecret(let app): ("sealed_secret", app, .error, 0)
        case .serverKey(let app): ("server_key", app, .error, 0)
        case .serverAPI(let app): ("server_api", app, .error, 0)
        case .clock: ("clock", nil, .warning, 60)
        // A receipt with such a row shows it again at each check, which may be days later.
        case .unreadableRows(let app): ("unreadable_rows", app, .warning, 86_400)
        case .unsettled: ("unsettled", nil, .error, 0)
        case .work: ("work", nil, .warning, 60)
        }
    }

    /// One sentence for the start: the problem, and what to do.
    var began: String {
        switch self {
        case .database: "the database does not answer and is tried until it does; nothing is lost"
        case .standby(.behind):
            "the standby for lookups is over a minute behind and the primary is asked instead: look after its replication"
        case .standby(.foreign):
            "DATABASE_READ_URL leads to no standby of the primary, but to another database or to a standby that was promoted, "
                + "and the primary is asked instead: correct it, or DATABASE_URL where the promoted one is the primary now"
        case .standby:
            "the standby for lookups does not answer, or not to this account, and the primary is asked instead: look after "
                + "it, or unset DATABASE_READ_URL"
        case .appStore:
            "Apple gives no answers, so every app waits and a few receipts are tried now and then: nothing is to be done, "
                + "`perennial status` shows it"
        case .noAnswers:
            "Apple gave no answer and is asked again by and by: if that lasts, look after the network and "
                + "PERENNIAL_APPSTORE_URL"
        case .pause: "checks of an app are paused and go on by themselves: `perennial status` shows when"
        case .slowness:
            "Apple asks for fewer calls or has too much to do, so it is asked more slowly; the pace grows again by itself: "
                + "nothing is to be done, `perennial status` shows it"
        case .incident:
            "Apple refuses receipts that it vouched for before; until that ends a refusal counts as no answer: nothing is "
                + "to be done, `perennial status` shows it"
        case .wrongSecret(let app, nil):
            "Apple refuses the shared secret (21004), or receipts of another app are sent: compare it with App Store "
                + "Connect, and put the right one in place with \(Self.rotation(of: app))"
        case .wrongSecret(let app, let environment?):
            "Apple refuses the shared secret (21004) in \(environment.rawValue): put the right one in place with "
                + Self.rotation(of: app)
        case .previousSecret(let app):
            "Apple refuses the shared secret and accepts the previous one, with which checks go on only as long as that "
                + "lasts: put the right one in place with \(Self.rotation(of: app))"
        case .sealedSecret(let app):
            "the shared secret does not open, so that Apple is not asked: set the PERENNIAL_MASTER_KEY it was sealed with, "
                + "or enter it again with \(Self.rotation(of: app))"
        case .serverKey(let app):
            "the Server API is not asked about receipts that need it, because the app's key is missing or does not open: "
                + "`perennial app server-key --app \(app)` stores it"
        case .serverAPI(let app):
            "the Server API refuses the calls, or what it says cannot be used: check the key, which `perennial app server-key "
                + "--app \(app)` stores, and the app's bundle id"
        case .clock:
            "Apple's clock is ahead of the database's, and answers more than an hour ahead count as none: check the clock of "
                + "the database's machine"
        case .unreadableRows:
            "rows of Apple's answers cannot be read; see `perennial receipt show`, `perennial explain` and, of signed texts, "
                + "`perennial app claims`"
        case .unsettled(let receipt):
            "an answer could not be written, and Apple is asked again when the lease ends: see "
                + "`perennial receipt show \(receipt)`"
        case .work(let work): "could not \(work); it is tried again by and by"
        }
    }

    /// One sentence for the end.
    var ended: String {
        switch self {
        case .database: "the database answers again"
        case .standby(let standing): "the standby for lookups is \(standing.rawValue) no longer"
        case .appStore: "Apple answers again, and all apps are asked about"
        case .noAnswers: "Apple answers again"
        case .pause: "checks of an app go on"
        case .slowness: "Apple is asked at the full pace again"
        case .incident: "Apple vouches for receipts again; what it refused is asked about once more"
        case .wrongSecret(_, nil): "Apple no longer refuses the shared secret"
        case .wrongSecret(_, let environment?): "Apple accepts the shared secret again in \(environment.rawValue)"
        case .previousSecret: "checks no longer rest on the previous shared secret"
        case .sealedSecret: "the shared secret opens again"
        case .serverKey: "the app's key for the Server API opens"
        case .serverAPI: "the Server API's answers can be used again"
        case .clock: "Apple's clock and the database's agree again"
        case .unreadableRows: "Apple's answers can be read in full again"
        case .unsettled: "the answer about a receipt was written"
        case .work(let work): "can \(work) again"
        }
    }

    fileprivate var metadata: Logger.Metadata {
        let (name, app) = (traits.name, traits.app)
        return app.map { ["condition": "\(name)", "app": "\($0)"] } ?? ["condition": "\(name)"]
    }

    private static func rotation(of app: BundleID) -> String {
        "`perennial app rotate-secret \(app) --shared-secret-file - < FILE`"
    }
}

/// The lasting problems of a process. Each is observed many times, and gets a log line when it starts and when it ends.
struct ConditionLog: Sendable {
    /// The most problems that last at the same time; a further one is not logged.
    static let conditionsMax = 1_000

    private struct Standing {
        let since: ContinuousClock.Instant
        /// The first observation that the problem is gone; nil while it is observed.
        var clearSince: ContinuousClock.Instant?
    }

    private var standing: [Condition: Standing] = [:]

    var isEmpty: Bool { standing.isEmpty }

    /// Returns whether a problem has begun and not ended.
    func stands(_ condition: Condition) -> Bool { standing[condition] != nil }

    /// Records a problem; returns a line when it is new.
    mutating func raise(_ condition: Condition, by reason: String, at now: ContinuousClock.Instant) -> ConditionLine? {
        guard standing[condition] == nil else {
            standing[condition]?.clearSince = nil
            return nil
        }
        guard standing.count < Self.conditionsMax else { return nil }
        standing[condition] = Standing(since: now)
        return .began(condition, reason: reason)
    }

    /// Records the observation that a problem is gone; returns a line when that ends it.
    mutating func clear(_ condition: Condition, at now: ContinuousClock.Instant) -> ConditionLine? {
        guard let failure = standing[condition] else { return nil }
        if failure.clearSince == nil { standing[condition]?.clearSince = now }
        return end(condition, at: now)
    }

    /// Ends the problems that have been gone for `calmSeconds`; returns their lines, the oldest problem first.
    mutating func endings(at now: ContinuousClock.Instant) -> [ConditionLine] {
        let inOrder = standing.sorted { ($0.value.since, $0.key.traits.name) < ($1.value.since, $1.key.traits.name) }
        return inOrder.compactMap { end($0.key, at: now) }
    }

    private mutating func end(_ condition: Condition, at now: ContinuousClock.Instant) -> ConditionLine? {
        guard let failure = standing[condition], let clearSince = failure.clearSince,
            now - clearSince >= .seconds(condition.traits.calmSeconds)
        else { return nil }
        standing[condition] = nil
        return .ended(condition, after: clearSince - failure.since)
    }
}

/// A log line about a problem.
enum ConditionLine: Sendable, Hashable {
    case began(Condition, reason: String)
    /// The problem is over; it lasted this long.
    case ended(Condition, after: Duration)

    var level: Logger.Level {
        switch self {
        case .began(let condition, reason: _): condition.traits.level
        case .ended: .info
        }
    }

    var message: String {
        switch self {
        case .began(let condition, reason: _): condition.began
        case .ended(let condition, after: _): condition.ended
        }
    }

    var metadata: Logger.Metadata {
        switch self {
        case .began(let condition, let reason): condition.metadata.merging(["reason": "\(reason)"]) { $1 }
        case .ended(let condition, let time): condition.metadata.merging(["seconds": "\(Int(time.seconds))"]) { $1 }
        }
    }
}

/// The problems of a process, logged as they begin and end.
package final class ConditionMonitor: Sendable {
    private let book = Mutex(ConditionLog())
    private let logger: Logger
    private let now: @Sendable () -> ContinuousClock.Instant

    /// Creates a monitor that writes to `logger`; only tests replace the clock, with `now`.
    package init(logger: Logger, now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.logger = logger
        self.now = now
    }

    /// Records that a problem is observed now; logs it when it is new.
    package func raise(_ condition: Condition, by reason: String) {
        write { book, now in [book.raise(condition, by: reason, at: now)] }
    }

    /// Records that a problem is gone now. Its end is logged once it has been gone for `calmSeconds`.
    package func clear(_ condition: Condition) {
        write { book, now in [book.clear(condition, at: now)] }
    }

    /// Records that several problems are gone; takes no time while there is no problem.
    func clear(_ conditions: some Sequence<Condition>) {
        write { book, now in book.isEmpty ? [] : conditions.map { book.clear($0, at: now) } }
    }

    /// Records a problem with its reason, or that it is gone where `reason` is nil.
    func see(_ condition: Condition, _ reason: String?) {
        if let reason { raise(condition, by: reason) } else { clear(condition) }
    }

    /// Ends the problems that have been gone for long enough. `MinuteLog` calls it every few seconds.
    func look() {
        write { book, now in book.endings(at: now) }
    }

    /// Logs under the lock, so that an end never comes before its start.
    private func write(_ change: (inout ConditionLog, ContinuousClock.Instant) -> [ConditionLine?]) {
        book.withLock { book in
            for line in change(&book, now()).compactMap(\.self) {
                logger.log(level: line.level, "\(line.message)", metadata: line.metadata)
            }
        }
    }
}
