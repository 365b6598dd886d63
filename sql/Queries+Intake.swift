/// Statements that store uploads and imports.
extension Queries {
    package static let auditUploads = SQLFile("audit_uploads", PackageResources.audit_uploads_sql)
    package static let countUploaded = SQLFile("count_uploaded", PackageResources.count_uploaded_sql)
    package static let findDigests = SQLFile("find_digests", PackageResources.find_digests_sql)
    package static let finishImport = SQLFile("finish_import", PackageResources.finish_import_sql)
    package static let insertCustomers = SQLFile("insert_customers", PackageResources.insert_customers_sql)
    package static let insertReceipts = SQLFile("insert_receipts", PackageResources.insert_receipts_sql)
    package static let lockUploader = SQLFile("lock_uploader", PackageResources.lock_uploader_sql)
    package static let markImport = SQLFile("mark_import", PackageResources.mark_import_sql)
    package static let openImport = SQLFile("open_import", PackageResources.open_import_sql)
    package static let readContents = SQLFile("read_contents", PackageResources.read_contents_sql)
    package static let readLastCheck = SQLFile("read_last_check", PackageResources.read_last_check_sql)
    package static let readReceiptDeliveries = SQLFile(
        "read_receipt_deliveries", PackageResources.read_receipt_deliveries_sql)
    package static let readReceiptPurchases = SQLFile(
        "read_receipt_purchases", PackageResources.read_receipt_purchases_sql)
    package static let storeProvisionals = SQLFile("store_provisionals", PackageResources.store_provisionals_sql)
    package static let storeUploads = SQLFile("store_uploads", PackageResources.store_uploads_sql)
    package static let waiting = SQLFile("waiting", PackageResources.waiting_sql)
}
