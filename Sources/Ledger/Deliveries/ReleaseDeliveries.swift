import Postgres
import SQL

extension LedgerDeliveries {
    /// The most purchases or subscriptions that one transaction goes through.
    private static let releasedMax: Int32 = 500

    /// Delivers, in one short transaction, what a catalog released of earlier purchases. Returns whether more may be
    /// left. A product that another worker goes through is left to it.
    package func release() async throws -> Bool {
        try await ledger.changingPollers { transaction in
            guard let row = try transaction.query(Queries.takeRelease).first else { return false }
            let (app, product) = (Parameter.int4(try row.int4("app_id")), try row.text("product_id"))
            let limit = Parameter.int4(Self.releasedMax)
            var place = (
                purchase: try row.int8IfPresent("after_purchase"),
                subscription: try row.int8IfPresent("after_subscription")
            )
            var (purchases, subscriptions): ([Int64], [Int64]) = ([], [])
            if let after = place.purchase {
                purchases = try transaction.query(
                    Queries.shareReleasedPurchases, [app, .text(product), .int8(after), limit]
                ).map { try $0.int8("purchase_id") }
                place.purchase = purchases.max()
            }
            if let after = place.subscription {
                subscriptions = try transaction.query(
                    Queries.shareReleasedSubscriptions, [app, .int8(after), limit]
                ).map { try $0.int8("subscription_id") }
                place.subscription = subscriptions.max()
            }
            try transaction.query(Queries.storeTurns, [.int8s(purchases), .int8s(subscriptions)])
            try transaction.query(
                Queries.advanceRelease, [app, .text(product), .int8(place.purchase), .int8(place.subscription)])
            return true
        }
    }
}
