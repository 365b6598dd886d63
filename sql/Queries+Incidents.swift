/// Statements about apps whose answers look wrong, and what waits for them.
extension Queries {
    package static let askRefusedAgain = SQLFile("ask_refused_again", PackageResources.ask_refused_again_sql)
    package static let closeClockIncidents = SQLFile(
        "close_clock_incidents", PackageResources.close_clock_incidents_sql)
    package static let closeIncidents = SQLFile("close_incidents", PackageResources.close_incidents_sql)
    package static let forgetRefusals = SQLFile("forget_refusals", PackageResources.forget_refusals_sql)
    package static let insertRefusals = SQLFile("insert_refusals", PackageResources.insert_refusals_sql)
    package static let lockIncidents = SQLFile("lock_incidents", PackageResources.lock_incidents_sql)
    package static let openClockIncidents = SQLFile("open_clock_incidents", PackageResources.open_clock_incidents_sql)
    package static let openIncidents = SQLFile("open_incidents", PackageResources.open_incidents_sql)
    package static let readIncidents = SQLFile("read_incidents", PackageResources.read_incidents_sql)
    package static let takeRefusalsBack = SQLFile("take_refusals_back", PackageResources.take_refusals_back_sql)
}
