/// The statements that check the invariants and store the results, with the number of repairs.
extension Queries {
    /// `queries/move_verify_turn.sql`
    package static let moveVerifyTurn = SQLFile("move_verify_turn", PackageResources.move_verify_turn_sql)
    /// `queries/read_invariants.sql`
    package static let readInvariants = SQLFile("read_invariants", PackageResources.read_invariants_sql)
    /// `queries/read_verify_terms.sql`
    package static let readVerifyTerms = SQLFile("read_verify_terms", PackageResources.read_verify_terms_sql)
    /// `queries/take_verify_turn.sql`
    package static let takeVerifyTurn = SQLFile("take_verify_turn", PackageResources.take_verify_turn_sql)
    /// `queries/verify_coverage.sql`
    package static let verifyCoverage = SQLFile("verify_coverage", PackageResources.verify_coverage_sql)
    /// `queries/verify_events.sql`
    package static let verifyEvents = SQLFile("verify_events", PackageResources.verify_events_sql)
    /// `queries/verify_feed.sql`
    package static let verifyFeed = SQLFile("verify_feed", PackageResources.verify_feed_sql)
    /// `queries/verify_leases.sql`
    package static let verifyLeases = SQLFile("verify_leases", PackageResources.verify_leases_sql)
    /// `queries/verify_limit.sql`
    package static let verifyLimit = SQLFile("verify_limit", PackageResources.verify_limit_sql)
    /// `queries/verify_next_events.sql`
    package static let verifyNextEvents = SQLFile("verify_next_events", PackageResources.verify_next_events_sql)
    /// `queries/verify_next_ownerships.sql`
    package static let verifyNextOwnerships = SQLFile(
        "verify_next_ownerships", PackageResources.verify_next_ownerships_sql)
    /// `queries/verify_next_positions.sql`
    package static let verifyNextPositions = SQLFile(
        "verify_next_positions", PackageResources.verify_next_positions_sql)
    /// `queries/verify_next_purchases.sql`
    package static let verifyNextPurchases = SQLFile(
        "verify_next_purchases", PackageResources.verify_next_purchases_sql)
    /// `queries/verify_next_receipts.sql`
    package static let verifyNextReceipts = SQLFile("verify_next_receipts", PackageResources.verify_next_receipts_sql)
    /// `queries/verify_next_subscriptions.sql`
    package static let verifyNextSubscriptions = SQLFile(
        "verify_next_subscriptions", PackageResources.verify_next_subscriptions_sql)
    /// `queries/verify_ownership.sql`
    package static let verifyOwnership = SQLFile("verify_ownership", PackageResources.verify_ownership_sql)
    /// `queries/verify_purchase_coverage.sql`
    package static let verifyPurchaseCoverage = SQLFile(
        "verify_purchase_coverage", PackageResources.verify_purchase_coverage_sql)
    /// `queries/verify_scheduled.sql`
    package static let verifyScheduled = SQLFile("verify_scheduled", PackageResources.verify_scheduled_sql)
    /// `queries/verify_subscriptions.sql`
    package static let verifySubscriptions = SQLFile("verify_subscriptions", PackageResources.verify_subscriptions_sql)
    /// `queries/verify_summaries.sql`
    package static let verifySummaries = SQLFile("verify_summaries", PackageResources.verify_summaries_sql)
    /// `queries/verify_timeline.sql`
    package static let verifyTimeline = SQLFile("verify_timeline", PackageResources.verify_timeline_sql)
    /// `queries/verify_wanted.sql`
    package static let verifyWanted = SQLFile("verify_wanted", PackageResources.verify_wanted_sql)
    /// `queries/write_invariants.sql`
    package static let writeInvariants = SQLFile("write_invariants", PackageResources.write_invariants_sql)
}
