/// Statements that record an answer equal to the last one.
extension Queries {
    package static let confirm = SQLFile("confirm", PackageResources.confirm_sql)
    package static let moveHistories = SQLFile("move_histories", PackageResources.move_histories_sql)
    package static let readStoredPurchases = SQLFile(
        "read_stored_purchases", PackageResources.read_stored_purchases_sql)
    package static let readStoredSubscriptions = SQLFile(
        "read_stored_subscriptions", PackageResources.read_stored_subscriptions_sql)
}
