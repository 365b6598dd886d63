/// Statements that keep the daily summaries of reports.
extension Queries {
    package static let addChecks = SQLFile("add_checks", PackageResources.add_checks_sql)
    package static let addShares = SQLFile("add_shares", PackageResources.add_shares_sql)
    package static let addSummaryRows = SQLFile("add_summary_rows", PackageResources.add_summary_rows_sql)
    package static let findUnsummarised = SQLFile("find_unsummarised", PackageResources.find_unsummarised_sql)
    package static let forgetShares = SQLFile("forget_shares", PackageResources.forget_shares_sql)
    package static let forgetSummaryRows = SQLFile("forget_summary_rows", PackageResources.forget_summary_rows_sql)
    package static let lockSummaries = SQLFile("lock_summaries", PackageResources.lock_summaries_sql)
    package static let markSummarised = SQLFile("mark_summarised", PackageResources.mark_summarised_sql)
    package static let moveSummaries = SQLFile("move_summaries", PackageResources.move_summaries_sql)
}
