/// Statements about notifications: facts when they are verified, else reasons to check soon.
extension Queries {
    package static let findNotifiedApp = SQLFile("find_notified_app", PackageResources.find_notified_app_sql)
    package static let storeNotification = SQLFile("store_notification", PackageResources.store_notification_sql)
    package static let pruneNotifications = SQLFile("prune_notifications", PackageResources.prune_notifications_sql)
    package static let setNotificationDigest = SQLFile(
        "set_notification_digest", PackageResources.set_notification_digest_sql)
    package static let storeVerifiedNotification = SQLFile(
        "store_verified_notification", PackageResources.store_verified_notification_sql)
    package static let storeUnaskedNotification = SQLFile(
        "store_unasked_notification", PackageResources.store_unasked_notification_sql)
    package static let lockNotificationsToApply = SQLFile(
        "lock_notifications_to_apply", PackageResources.lock_notifications_to_apply_sql)
    package static let writeAppliedNotifications = SQLFile(
        "write_applied_notifications", PackageResources.write_applied_notifications_sql)
    package static let postponeNotification = SQLFile(
        "postpone_notification", PackageResources.postpone_notification_sql)
    package static let readAppliedNotifications = SQLFile(
        "read_applied_notifications", PackageResources.read_applied_notifications_sql)
    package static let findTokenCustomers = SQLFile("find_token_customers", PackageResources.find_token_customers_sql)
    package static let requireWhole = SQLFile("require_whole", PackageResources.require_whole_sql)
    package static let takeCatchUp = SQLFile("take_catch_up", PackageResources.take_catch_up_sql)
    package static let writeCatchUp = SQLFile("write_catch_up", PackageResources.write_catch_up_sql)
    package static let restCatchUp = SQLFile("rest_catch_up", PackageResources.rest_catch_up_sql)
    package static let hastenCatchUps = SQLFile("hasten_catch_ups", PackageResources.hasten_catch_ups_sql)
}
