/// Statements that recompute facts from kept answers.
extension Queries {
    package static let compareEntitlements = SQLFile(
        "compare_entitlements", PackageResources.compare_entitlements_sql)
    package static let countRebuildable = SQLFile("count_rebuildable", PackageResources.count_rebuildable_sql)
    package static let deleteAliases = SQLFile("delete_aliases", PackageResources.delete_aliases_sql)
    package static let findPurchasesAfter = SQLFile("find_purchases_after", PackageResources.find_purchases_after_sql)
    package static let findStoredEntitlementsAfter = SQLFile(
        "find_stored_entitlements_after", PackageResources.find_stored_entitlements_after_sql)
    package static let findSubscriptionsAfter = SQLFile(
        "find_subscriptions_after", PackageResources.find_subscriptions_after_sql)
    package static let insertCorrections = SQLFile("insert_corrections", PackageResources.insert_corrections_sql)
    package static let storeCheckedAt = SQLFile("store_checked_at", PackageResources.store_checked_at_sql)
    package static let lockRebuiltPurchases = SQLFile(
        "lock_rebuilt_purchases", PackageResources.lock_rebuilt_purchases_sql)
    package static let lockRebuiltSubscriptions = SQLFile(
        "lock_rebuilt_subscriptions", PackageResources.lock_rebuilt_subscriptions_sql)
    package static let readLinks = SQLFile("read_links", PackageResources.read_links_sql)
    package static let readObservations = SQLFile("read_observations", PackageResources.read_observations_sql)
}
