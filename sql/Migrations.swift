/// The forward-only migrations in the order in which they are applied.
public enum Migrations {
    /// Every migration, oldest first.
    public static let all: [SQLFile] = [
        SQLFile("0001_types", PackageResources._0001_types_sql),
        SQLFile("0002_apps", PackageResources._0002_apps_sql),
        SQLFile("0003_receipts", PackageResources._0003_receipts_sql),
        SQLFile("0004_subscriptions", PackageResources._0004_subscriptions_sql),
        SQLFile("0005_observations", PackageResources._0005_observations_sql),
        SQLFile("0006_events", PackageResources._0006_events_sql),
        SQLFile("0007_lookup", PackageResources._0007_lookup_sql),
        SQLFile("0008_perennial", PackageResources._0008_perennial_sql),
    ]
}
