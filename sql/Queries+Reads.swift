/// Statements about the hot standby that answers reads.
extension Queries {
    package static let standbyLag = SQLFile("standby_lag", PackageResources.standby_lag_sql)
}
