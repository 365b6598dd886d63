/// Statements about notifications, which pull a check forward.
extension Queries {
    package static let findNotifiedApp = SQLFile("find_notified_app", PackageResources.find_notified_app_sql)
    package static let storeNotification = SQLFile("store_notification", PackageResources.store_notification_sql)
    package static let pruneNotifications = SQLFile("prune_notifications", PackageResources.prune_notifications_sql)
    package static let setNotificationDigest = SQLFile(
        "set_notification_digest", PackageResources.set_notification_digest_sql)
}
