/// Statements that record an answer equal to the last one.
extension Queries {
    package static let confirm = SQLFile("confirm", PackageResources.confirm_sql)
    package static let confirmPurchases = SQLFile("confirm_purchases", PackageResources.confirm_purchases_sql)
    package static let lockConfirmed = SQLFile("lock_confirmed", PackageResources.lock_confirmed_sql)
    package static let lockConfirmedPurchases = SQLFile(
        "lock_confirmed_purchases", PackageResources.lock_confirmed_purchases_sql)
    package static let lockPolled = SQLFile("lock_polled", PackageResources.lock_polled_sql)
    package static let readScheduleInputs = SQLFile("read_schedule_inputs", PackageResources.read_schedule_inputs_sql)
}
