/// Statements that give events their positions and read them.
extension Queries {
    package static let lockFeed = SQLFile("lock_feed", PackageResources.lock_feed_sql)
    package static let readFeed = SQLFile("read_feed", PackageResources.read_feed_sql)
    package static let readFeedHead = SQLFile("read_feed_head", PackageResources.read_feed_head_sql)
    package static let renewFeed = SQLFile("renew_feed", PackageResources.renew_feed_sql)
    package static let sequenceFeed = SQLFile("sequence_feed", PackageResources.sequence_feed_sql)
    package static let checkFeedPlace = SQLFile("check_feed_place", PackageResources.check_feed_place_sql)
}
