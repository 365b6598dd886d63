/// Statements that delete what the retention of an app no longer keeps.
extension Queries {
    package static let deleteAudit = SQLFile("delete_audit", PackageResources.delete_audit_sql)
    package static let deleteObservations = SQLFile("delete_observations", PackageResources.delete_observations_sql)
    package static let dropEmptyMonths = SQLFile("drop_empty_months", PackageResources.drop_empty_months_sql)
    package static let findPrunable = SQLFile("find_prunable", PackageResources.find_prunable_sql)
    package static let readHeld = SQLFile("read_held", PackageResources.read_held_sql)
    package static let findReducibleNotifications = SQLFile(
        "find_reducible_notifications", PackageResources.find_reducible_notifications_sql)
    package static let writeReducedNotifications = SQLFile(
        "write_reduced_notifications", PackageResources.write_reduced_notifications_sql)
    package static let findReducibleAnswers = SQLFile(
        "find_reducible_answers", PackageResources.find_reducible_answers_sql)
    package static let writeReducedAnswers = SQLFile(
        "write_reduced_answers", PackageResources.write_reduced_answers_sql)
}
