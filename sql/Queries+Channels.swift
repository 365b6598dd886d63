/// Statements about the comparison of channels.
extension Queries {
    package static let noteComparisons = SQLFile("note_comparisons", PackageResources.note_comparisons_sql)
    package static let endDifferences = SQLFile("end_differences", PackageResources.end_differences_sql)
    package static let storeDifferences = SQLFile("store_differences", PackageResources.store_differences_sql)
    package static let askAgain = SQLFile("ask_again", PackageResources.ask_again_sql)
    package static let beginChannelWalk = SQLFile("begin_channel_walk", PackageResources.begin_channel_walk_sql)
    package static let continueChannelWalk = SQLFile(
        "continue_channel_walk", PackageResources.continue_channel_walk_sql)
    package static let readChannelStanding = SQLFile(
        "read_channel_standing", PackageResources.read_channel_standing_sql)
}
