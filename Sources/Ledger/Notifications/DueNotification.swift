import Postgres
import Subscriptions

/// A verified notification that is being applied.
struct DueNotification: Sendable {
    let id: Int64
    let app: App
    let evidence: Evidence
    /// How often applying it was tried before.
    let attempts: Int

    /// The natural keys of the subscriptions it is about.
    var subscriptionKeys: [SubscriptionRowKey] {
        evidence.subscriptions.map { SubscriptionRowKey(appID: app.id, environment: evidence.environment, id: $0) }
    }

    /// The one-time purchases it is about, by natural key.
    var purchases: [(key: PurchaseRowKey, evidence: PurchaseEvidence)] {
        evidence.purchases.map {
            (PurchaseRowKey(appID: app.id, environment: evidence.environment, purchase: $0.key), $0)
        }
    }
}

/// What became of a notification.
enum NotificationOutcome: String {
    /// Its facts are part of the ledger.
    case applied
    /// It does not join what is known: a whole answer comes first.
    case awaitsWhole = "awaits_whole"
    /// No whole answer made it join. The answers since decide.
    case unjoined
    /// It cannot be read any more, or it is about an app that is gone.
    case noFacts = "no_facts"
}

extension KeptNotification {
    init(row: Row) throws {
        self.init(
            id: try row.int8("notification_id"), environment: try row.word("environment"),
            texts: try row.byteaIfPresent("texts"), claims: try row.textIfPresent("claims"))
    }
}

extension SubscriptionRowKey {
    /// Reads what a notification is about.
    init(subject row: Row) throws {
        self.init(
            appID: try row.int4("app_id"), environment: try row.word("environment"),
            id: OriginalTransactionID(try row.text("original_transaction_id")))
    }
}
