import Postgres
import Subscriptions

/// The contents of receipts, as targets of a replay.
struct ReplayTargets {
    private var subscriptions: [Int64: [Replay.Target]] = [:]
    private var purchases: [Int64: [Replay.PurchaseTarget]] = [:]

    init(_ rows: [Row]) throws {
        for row in rows {
            let receipt = try row.int8("receipt_id")
            let (appID, environment) = (try row.int4("app_id"), try row.word("environment") as StoreEnvironment)
            let id = OriginalTransactionID(try row.text("original_transaction_id"))
            if let rowID = try row.int8IfPresent("subscription_id") {
                subscriptions[receipt, default: []].append(
                    Replay.Target(
                        rowID: rowID, key: SubscriptionRowKey(appID: appID, environment: environment, id: id),
                        polledBy: try row.int8IfPresent("polled_by").map { ReceiptID($0) },
                        asOf: try row.instant("as_of")))
            }
            if let rowID = try row.int8IfPresent("purchase_id") {
                let key = PurchaseKey(originalTransactionID: id, productID: ProductID(try row.text("product_id")))
                purchases[receipt, default: []].append(
                    Replay.PurchaseTarget(
                        rowID: rowID, key: PurchaseRowKey(appID: appID, environment: environment, purchase: key),
                        polledBy: try row.int8IfPresent("polled_by").map { ReceiptID($0) },
                        asOf: try row.instant("as_of")))
            }
        }
    }

    /// Takes the contents of one of the receipts.
    init(of receipt: Int64, among all: ReplayTargets) {
        subscriptions[receipt] = all.subscriptions[receipt]
        purchases[receipt] = all.purchases[receipt]
    }

    /// Every subscription once.
    var allSubscriptions: [Replay.Target] {
        Dictionary(subscriptions.values.joined().map { ($0.rowID, $0) }) { first, _ in first }.values
            .sorted { $0.rowID < $1.rowID }
    }

    /// Every purchase once.
    var allPurchases: [Replay.PurchaseTarget] {
        Dictionary(purchases.values.joined().map { ($0.rowID, $0) }) { first, _ in first }.values
            .sorted { $0.rowID < $1.rowID }
    }
}
