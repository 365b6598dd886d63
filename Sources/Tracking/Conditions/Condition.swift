package import Ledger
import Logging
package import Subscriptions

/// A problem that lasts for a while. Each is logged once when it begins and once when it ends.
package enum Condition: Hashable, Sendable {
    /// PostgreSQL does not answer.
    case database
    /// The hot standby for lookups does not answer.
    case standby
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
    /// An app has no usable key for the Server API, or its answers cannot be used.
    case serverAPI(BundleID)
    /// Apple's clock is ahead of the database's.
    case clock
    /// Rows of Apple's answers about an app cannot be read.
    case unreadableRows(BundleID)
    /// The answer about a receipt could not be written.
    case unsettled(ReceiptID)
    /// A job of this process fails, such as `claim receipts`.
    case work(String)

    /// How long the problem must be gone until it is over, in seconds. So an intermittent failure is one problem.
    var calmSeconds: Double {
        switch self {
        case .database, .standby, .incident, .wrongSecret, .previousSecret, .sealedSecret, .serverAPI, .unsettled:
            0
        case .appStore, .noAnswers, .pause, .slowness, .clock, .work: 60
        // A receipt with such a row shows it again at each check, which may be days later.
        case .unreadableRows: 86_400
        }
    }

    /// The log level of the problem.
    var level: Logger.Level {
        switch self {
        case .database, .wrongSecret, .sealedSecret, .serverAPI, .unsettled: .error
        case .standby, .appStore, .noAnswers, .pause, .slowness, .incident, .previousSecret, .clock, .unreadableRows,
            .work:
            .warning
        }
    }

    /// The name in the log's fields.
    var name: String {
        switch self {
        case .database: "database"
        case .standby: "standby"
        case .appStore: "app_store"
        case .noAnswers: "no_answers"
        case .pause: "pause"
        case .slowness: "slowness"
        case .incident: "incident"
        case .wrongSecret: "wrong_secret"
        case .previousSecret: "previous_secret"
        case .sealedSecret: "sealed_secret"
        case .serverAPI: "server_api"
        case .clock: "clock"
        case .unreadableRows: "unreadable_rows"
        case .unsettled: "unsettled"
        case .work: "work"
        }
    }

    /// The app concerned; nil for a problem that names no app.
    var app: BundleID? {
        switch self {
        case .noAnswers(let app), .pause(let app), .slowness(let app), .incident(let app), .wrongSecret(let app, _),
            .previousSecret(let app), .sealedSecret(let app), .serverAPI(let app), .unreadableRows(let app):
            app
        case .database, .standby, .appStore, .clock, .unsettled, .work: nil
        }
    }
}
