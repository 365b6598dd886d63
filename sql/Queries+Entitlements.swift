/// Statements that read and store what customers may use.
extension Queries {
    package static let currentEntitlements = SQLFile(
        "current_entitlements", PackageResources.current_entitlements_sql)
    package static let currentEntitlementsOfMany = SQLFile(
        "current_entitlements_of_many", PackageResources.current_entitlements_of_many_sql)
    package static let entitlements = SQLFile("entitlements", PackageResources.entitlements_sql)
    package static let lockAffectedCustomers = SQLFile(
        "lock_affected_customers", PackageResources.lock_affected_customers_sql)
    package static let lockOutdatedEntitlements = SQLFile(
        "lock_outdated_entitlements", PackageResources.lock_outdated_entitlements_sql)
    package static let outdateEntitlements = SQLFile(
        "outdate_entitlements", PackageResources.outdate_entitlements_sql)
    package static let storeEntitlements = SQLFile("store_entitlements", PackageResources.store_entitlements_sql)
}
