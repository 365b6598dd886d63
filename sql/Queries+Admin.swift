/// Statements of the admin pages: sessions, search, histories and the overview.
extension Queries {
    package static let closeSession = SQLFile("close_session", PackageResources.close_session_sql)
    package static let findSession = SQLFile("find_session", PackageResources.find_session_sql)
    package static let listIncidents = SQLFile("list_incidents", PackageResources.list_incidents_sql)
    package static let openSession = SQLFile("open_session", PackageResources.open_session_sql)
    package static let overviewChecks = SQLFile("overview_checks", PackageResources.overview_checks_sql)
    package static let overviewDays = SQLFile("overview_days", PackageResources.overview_days_sql)
    package static let overviewStaleness = SQLFile("overview_staleness", PackageResources.overview_staleness_sql)
    package static let readAnswers = SQLFile("read_answers", PackageResources.read_answers_sql)
    package static let readCustomerEvents = SQLFile("read_customer_events", PackageResources.read_customer_events_sql)
    package static let readSchedule = SQLFile("read_schedule", PackageResources.read_schedule_sql)
    package static let readTimelines = SQLFile("read_timelines", PackageResources.read_timelines_sql)
    package static let searchCustomers = SQLFile("search_customers", PackageResources.search_customers_sql)
    package static let wasAskedLately = SQLFile("was_asked_lately", PackageResources.was_asked_lately_sql)
}
