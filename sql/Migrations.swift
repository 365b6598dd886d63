/// The forward-only migrations in the order in which they are applied.
public enum Migrations {
    /// Every migration, oldest first.
    public static let all: [SQLFile] = [
        SQLFile("0001_types", PackageResources._001_types_sql),
        SQLFile("0002_apps", PackageResources._002_apps_sql),
        SQLFile("0003_receipts", PackageResources._003_receipts_sql),
        SQLFile("0004_subscriptions", PackageResources._004_subscriptions_sql),
        SQLFile("0005_observations", PackageResources._005_observations_sql),
        SQLFile("0006_events", PackageResources._006_events_sql),
        SQLFile("0007_lookup", PackageResources._007_lookup_sql),
        SQLFile("0008_perennial", PackageResources._008_perennial_sql),
        SQLFile("0009_loop", PackageResources._009_loop_sql),
        SQLFile("0010_import", PackageResources._010_import_sql),
        SQLFile("0011_rebuild", PackageResources._011_rebuild_sql),
        SQLFile("0012_incidents", PackageResources._012_incidents_sql),
        SQLFile("0013_money", PackageResources._013_money_sql),
        SQLFile("0014_manners", PackageResources._014_manners_sql),
        SQLFile("0015_hints", PackageResources._015_hints_sql),
        SQLFile("0016_answers", PackageResources._016_answers_sql),
        SQLFile("0017_customers", PackageResources._017_customers_sql),
        SQLFile("0018_summaries", PackageResources._018_summaries_sql),
        SQLFile("0019_machines", PackageResources._019_machines_sql),
        SQLFile("0020_lookups", PackageResources._020_lookups_sql),
        SQLFile("0021_reports", PackageResources._021_reports_sql),
        SQLFile("0022_report_rows", PackageResources._022_report_rows_sql),
        SQLFile("0023_decisions", PackageResources._023_decisions_sql),
        SQLFile("0024_machines_more", PackageResources._024_machines_more_sql),
        SQLFile("0025_reports_at_size", PackageResources._025_reports_at_size_sql),
        SQLFile("0026_right_changes", PackageResources._026_right_changes_sql),
        SQLFile("0027_right_log_of_a_restored_database", PackageResources._027_right_log_of_a_restored_database_sql),
        SQLFile("0028_right_checks", PackageResources._028_right_checks_sql),
    ]
}
