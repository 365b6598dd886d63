/// Statements that record an answer equal to the last one.
extension Queries {
    package static let confirm = SQLFile("confirm", PackageResources.confirm_sql)
}
