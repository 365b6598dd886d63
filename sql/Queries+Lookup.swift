/// Statements that answer lookups, the status and the metrics.
extension Queries {
    package static let customerPurchases = SQLFile("customer_purchases", PackageResources.customer_purchases_sql)
    package static let customerSubscriptions = SQLFile(
        "customer_subscriptions", PackageResources.customer_subscriptions_sql)
    package static let customerTimeline = SQLFile("customer_timeline", PackageResources.customer_timeline_sql)
    package static let customerUnverified = SQLFile("customer_unverified", PackageResources.customer_unverified_sql)
    package static let findCustomer = SQLFile("find_customer", PackageResources.find_customer_sql)
    package static let findReceipts = SQLFile("find_receipts", PackageResources.find_receipts_sql)
    package static let gaugeApps = SQLFile("gauge_apps", PackageResources.gauge_apps_sql)
    package static let gaugeLanes = SQLFile("gauge_lanes", PackageResources.gauge_lanes_sql)
    package static let gaugeWhole = SQLFile("gauge_whole", PackageResources.gauge_whole_sql)
    package static let holdSnapshot = SQLFile("hold_snapshot", PackageResources.hold_snapshot_sql)
    package static let readBought = SQLFile("read_bought", PackageResources.read_bought_sql)
    package static let readHoldings = SQLFile("read_holdings", PackageResources.read_holdings_sql)
    package static let readSources = SQLFile("read_sources", PackageResources.read_sources_sql)
    package static let readStandings = SQLFile("read_standings", PackageResources.read_standings_sql)
    package static let status = SQLFile("status", PackageResources.status_sql)
    package static let statusIncidents = SQLFile("status_incidents", PackageResources.status_incidents_sql)
    package static let statusProvisional = SQLFile("status_provisional", PackageResources.status_provisional_sql)
    package static let statusProducts = SQLFile("status_products", PackageResources.status_products_sql)
    package static let statusTotals = SQLFile("status_totals", PackageResources.status_totals_sql)
}
