/// The reports, each runnable by `psql -f` with variables.
public enum Reports {
    /// Every report, by name.
    public static let all: [SQLFile] = [
        SQLFile("active_subscriptions", PackageResources.active_subscriptions_sql),
        SQLFile("changes_by_day", PackageResources.changes_by_day_sql),
    ]
}
