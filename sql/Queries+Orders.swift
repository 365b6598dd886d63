/// Statements about orders.
extension Queries {
    package static let advanceOrders = SQLFile("advance_orders", PackageResources.advance_orders_sql)
    package static let countOrderReceipts = SQLFile("count_order_receipts", PackageResources.count_order_receipts_sql)
    package static let expireOrders = SQLFile("expire_orders", PackageResources.expire_orders_sql)
    package static let findOrder = SQLFile("find_order", PackageResources.find_order_sql)
    package static let findOrderCustomers = SQLFile("find_order_customers", PackageResources.find_order_customers_sql)
    package static let findPayments = SQLFile("find_payments", PackageResources.find_payments_sql)
    package static let findUnclaimable = SQLFile("find_unclaimable", PackageResources.find_unclaimable_sql)
    package static let forgetOrderRequests = SQLFile(
        "forget_order_requests", PackageResources.forget_order_requests_sql)
    package static let lockOrder = SQLFile("lock_order", PackageResources.lock_order_sql)
    package static let mayBePaying = SQLFile("may_be_paying", PackageResources.may_be_paying_sql)
    package static let payOrders = SQLFile("pay_orders", PackageResources.pay_orders_sql)
    package static let placeOrders = SQLFile("place_orders", PackageResources.place_orders_sql)
    package static let readCustomerOrders = SQLFile("read_customer_orders", PackageResources.read_customer_orders_sql)
    package static let readNewestOrders = SQLFile("read_newest_orders", PackageResources.read_newest_orders_sql)
    package static let readOrder = SQLFile("read_order", PackageResources.read_order_sql)
    package static let readOrderChanges = SQLFile("read_order_changes", PackageResources.read_order_changes_sql)
    package static let readOrderKey = SQLFile("read_order_key", PackageResources.read_order_key_sql)
    package static let readOrderReceipts = SQLFile("read_order_receipts", PackageResources.read_order_receipts_sql)
    package static let readRoomForOrder = SQLFile("read_room_for_order", PackageResources.read_room_for_order_sql)
    package static let recallOrder = SQLFile("recall_order", PackageResources.recall_order_sql)
    package static let reportOrder = SQLFile("report_order", PackageResources.report_order_sql)
    package static let settleOrderReceipts = SQLFile(
        "settle_order_receipts", PackageResources.settle_order_receipts_sql)
    package static let storeOrderReceipts = SQLFile("store_order_receipts", PackageResources.store_order_receipts_sql)
}
