/// The forward-only migrations in the order in which they are applied.
package enum Migrations {
    /// Every migration, oldest first.
    package static let all: [SQLFile] = [
        SQLFile("0001_types", PackageResources._001_types_sql),
        SQLFile("0002_apps", PackageResources._002_apps_sql),
        SQLFile("0003_receipts", PackageResources._003_receipts_sql),
        SQLFile("0004_subscriptions", PackageResources._004_subscriptions_sql),
        SQLFile("0005_customers", PackageResources._005_customers_sql),
        SQLFile("0006_observations", PackageResources._006_observations_sql),
        SQLFile("0007_events", PackageResources._007_events_sql),
        SQLFile("0008_catalog", PackageResources._008_catalog_sql),
        SQLFile("0009_entitlements", PackageResources._009_entitlements_sql),
        SQLFile("0010_lookups", PackageResources._010_lookups_sql),
        SQLFile("0011_rate_limits", PackageResources._011_rate_limits_sql),
        SQLFile("0012_notifications", PackageResources._012_notifications_sql),
        SQLFile("0013_audit", PackageResources._013_audit_sql),
        SQLFile("0014_operations", PackageResources._014_operations_sql),
        SQLFile("0015_perennial", PackageResources._015_perennial_sql),
        SQLFile("0016_report_inputs", PackageResources._016_report_inputs_sql),
        SQLFile("0017_charges", PackageResources._017_charges_sql),
        SQLFile("0018_outcomes", PackageResources._018_outcomes_sql),
        SQLFile("0019_summaries", PackageResources._019_summaries_sql),
        SQLFile("0020_reports", PackageResources._020_reports_sql),
        SQLFile("0021_day_summaries", PackageResources._021_day_summaries_sql),
        SQLFile("0022_orders", PackageResources._022_orders_sql),
        SQLFile("0023_deliveries", PackageResources._023_deliveries_sql),
        SQLFile("0024_view_columns", PackageResources._024_view_columns_sql),
        SQLFile("0025_server_api", PackageResources._025_server_api_sql),
        SQLFile("0026_channels", PackageResources._026_channels_sql),
        SQLFile("0027_support", PackageResources._027_support_sql),
        SQLFile("0029_catch_up", PackageResources._029_catch_up_sql),
    ]
}
