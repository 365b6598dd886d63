/// Statements that prepare a report.
extension Queries {
    package static let quoteValues = SQLFile("quote_values", PackageResources.quote_values_sql)
}
