/// Statements that check the invariants and store the results, with the number of repairs.
extension Queries {
    package static let moveVerifyTurn = SQLFile("move_verify_turn", PackageResources.move_verify_turn_sql)
    package static let readInvariants = SQLFile("read_invariants", PackageResources.read_invariants_sql)
    package static let readVerifyTerms = SQLFile("read_verify_terms", PackageResources.read_verify_terms_sql)
    package static let takeVerifyTurn = SQLFile("take_verify_turn", PackageResources.take_verify_turn_sql)
    package static let verifyCoverage = SQLFile("verify_coverage", PackageResources.verify_coverage_sql)
    package static let verifyEntitlements = SQLFile("verify_entitlements", PackageResources.verify_entitlements_sql)
    package static let verifyEvents = SQLFile("verify_events", PackageResources.verify_events_sql)
    package static let verifyFeed = SQLFile("verify_feed", PackageResources.verify_feed_sql)
    package static let verifyLeases = SQLFile("verify_leases", PackageResources.verify_leases_sql)
    package static let verifyLimit = SQLFile("verify_limit", PackageResources.verify_limit_sql)
    package static let verifyNextApps = SQLFile("verify_next_apps", PackageResources.verify_next_apps_sql)
    package static let verifyNextCustomers = SQLFile(
        "verify_next_customers", PackageResources.verify_next_customers_sql)
    package static let verifyNextEvents = SQLFile("verify_next_events", PackageResources.verify_next_events_sql)
    package static let verifyNextOwnerships = SQLFile(
        "verify_next_ownerships", PackageResources.verify_next_ownerships_sql)
    package static let verifyNextPositions = SQLFile(
        "verify_next_positions", PackageResources.verify_next_positions_sql)
    package static let verifyNextPurchases = SQLFile(
        "verify_next_purchases", PackageResources.verify_next_purchases_sql)
    package static let verifyNextReceipts = SQLFile("verify_next_receipts", PackageResources.verify_next_receipts_sql)
    package static let verifyNextSubscriptions = SQLFile(
        "verify_next_subscriptions", PackageResources.verify_next_subscriptions_sql)
    package static let verifyOwnership = SQLFile("verify_ownership", PackageResources.verify_ownership_sql)
    package static let verifyPurchaseDeliveries = SQLFile(
        "verify_purchase_deliveries", PackageResources.verify_purchase_deliveries_sql)
    package static let verifyScheduled = SQLFile("verify_scheduled", PackageResources.verify_scheduled_sql)
    package static let verifySubscriptionDeliveries = SQLFile(
        "verify_subscription_deliveries", PackageResources.verify_subscription_deliveries_sql)
    package static let verifySubscriptions = SQLFile("verify_subscriptions", PackageResources.verify_subscriptions_sql)
    package static let verifySummaries = SQLFile("verify_summaries", PackageResources.verify_summaries_sql)
    package static let verifySums = SQLFile("verify_sums", PackageResources.verify_sums_sql)
    package static let verifyTimeline = SQLFile("verify_timeline", PackageResources.verify_timeline_sql)
    package static let verifyWanted = SQLFile("verify_wanted", PackageResources.verify_wanted_sql)
    package static let writeInvariants = SQLFile("write_invariants", PackageResources.write_invariants_sql)
}
