/// Statements that prepare a report.
extension Queries {
    package static let whyNoRows = SQLFile("why_no_rows", PackageResources.why_no_rows_sql)
    package static let quoteValues = SQLFile("quote_values", PackageResources.quote_values_sql)
}
