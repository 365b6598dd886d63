/// Statements about support calls.
extension Queries {
    package static let answerSupportCall = SQLFile("answer_support_call", PackageResources.answer_support_call_sql)
    package static let deleteSupportCalls = SQLFile("delete_support_calls", PackageResources.delete_support_calls_sql)
    package static let findMassExtension = SQLFile("find_mass_extension", PackageResources.find_mass_extension_sql)
    package static let findSupportCall = SQLFile("find_support_call", PackageResources.find_support_call_sql)
    package static let hastenCheck = SQLFile("hasten_check", PackageResources.hasten_check_sql)
    package static let insertSupportCall = SQLFile("insert_support_call", PackageResources.insert_support_call_sql)
    package static let lockSupportCalls = SQLFile("lock_support_calls", PackageResources.lock_support_calls_sql)
    package static let readReceived = SQLFile("read_received", PackageResources.read_received_sql)
    package static let repeatSupportCall = SQLFile("repeat_support_call", PackageResources.repeat_support_call_sql)
}
