/// Statements about apps, their settings and their sealed secrets.
extension Queries {
    package static let addApp = SQLFile("add_app", PackageResources.add_app_sql)
    package static let findProbeReceipts = SQLFile("find_probe_receipts", PackageResources.find_probe_receipts_sql)
    package static let pauseApp = SQLFile("pause_app", PackageResources.pause_app_sql)
    package static let readApps = SQLFile("read_apps", PackageResources.read_apps_sql)
    package static let readUnclaimedReceipts = SQLFile(
        "read_unclaimed_receipts", PackageResources.read_unclaimed_receipts_sql)
    package static let readUnerased = SQLFile("read_unerased", PackageResources.read_unerased_sql)
    package static let removeApp = SQLFile("remove_app", PackageResources.remove_app_sql)
    package static let readOfferKey = SQLFile("read_offer_key", PackageResources.read_offer_key_sql)
    package static let removeOfferKey = SQLFile("remove_offer_key", PackageResources.remove_offer_key_sql)
    package static let rotateSecret = SQLFile("rotate_secret", PackageResources.rotate_secret_sql)
    package static let setApp = SQLFile("set_app", PackageResources.set_app_sql)
    package static let removeServerKey = SQLFile("remove_server_key", PackageResources.remove_server_key_sql)
    package static let storeServerKey = SQLFile("store_server_key", PackageResources.store_server_key_sql)
    package static let storeOfferKey = SQLFile("store_offer_key", PackageResources.store_offer_key_sql)
}
