/// Statements about deliveries: turns, the queue, acknowledgements, and what a catalog releases.
extension Queries {
    package static let acknowledgeUnchanged = SQLFile(
        "acknowledge_unchanged", PackageResources.acknowledge_unchanged_sql)
    package static let advanceRelease = SQLFile("advance_release", PackageResources.advance_release_sql)
    package static let countDueDeliveries = SQLFile(
        "count_due_deliveries", PackageResources.count_due_deliveries_sql)
    package static let handOverDue = SQLFile("hand_over_due", PackageResources.hand_over_due_sql)
    package static let isQueueBehind = SQLFile("is_queue_behind", PackageResources.is_queue_behind_sql)
    package static let lockQueue = SQLFile("lock_queue", PackageResources.lock_queue_sql)
    package static let markDue = SQLFile("mark_due", PackageResources.mark_due_sql)
    package static let moveDeliveries = SQLFile("move_deliveries", PackageResources.move_deliveries_sql)
    package static let placeDeliveries = SQLFile("place_deliveries", PackageResources.place_deliveries_sql)
    package static let readBalances = SQLFile("read_balances", PackageResources.read_balances_sql)
    package static let readCustomerDeliveries = SQLFile(
        "read_customer_deliveries", PackageResources.read_customer_deliveries_sql)
    package static let readDeliveries = SQLFile("read_deliveries", PackageResources.read_deliveries_sql)
    package static let readDelivery = SQLFile("read_delivery", PackageResources.read_delivery_sql)
    package static let readDueDeliveries = SQLFile("read_due_deliveries", PackageResources.read_due_deliveries_sql)
    package static let readNewestDeliveries = SQLFile(
        "read_newest_deliveries", PackageResources.read_newest_deliveries_sql)
    package static let requestRelease = SQLFile("request_release", PackageResources.request_release_sql)
    package static let settleDeliveries = SQLFile("settle_deliveries", PackageResources.settle_deliveries_sql)
    package static let shareDelivered = SQLFile("share_delivered", PackageResources.share_delivered_sql)
    package static let shareReleasedPurchases = SQLFile(
        "share_released_purchases", PackageResources.share_released_purchases_sql)
    package static let shareReleasedSubscriptions = SQLFile(
        "share_released_subscriptions", PackageResources.share_released_subscriptions_sql)
    package static let skipErased = SQLFile("skip_erased", PackageResources.skip_erased_sql)
    package static let storeTurns = SQLFile("store_turns", PackageResources.store_turns_sql)
    package static let takeRelease = SQLFile("take_release", PackageResources.take_release_sql)
}
