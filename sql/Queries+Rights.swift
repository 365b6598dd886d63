/// Statements about rights and the changes to them.
extension Queries {
    package static let rightChanges = SQLFile("right_changes", PackageResources.right_changes_sql)
    package static let rights = SQLFile("rights", PackageResources.rights_sql)
    package static let pruneRightLog = SQLFile("prune_right_log", PackageResources.prune_right_log_sql)
}
