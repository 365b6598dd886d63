/// One row of `in_app` or `latest_receipt_info`. Numbers and booleans are strings.
struct TransactionRow: Sendable {
    enum Seen: Sendable {
        /// As the device knew it when its receipt was made.
        case onDevice(Moment)
        case byServer
    }

    private let productID: String
    private let transactionID: String
    private let originalTransactionID: String
    private let purchase: Moment
    private let originalPurchase: Moment
    private var expires: Moment?
    private var webOrderLineItemID: String?
    private var isTrial = false
    private var groupID: String?
    private var ownership = "PURCHASED"
    private var cancellation: Period.Cancellation?
    private var showsCancellationDate = true
    private var showsUpgrade = false

    init(lifetime: Customer.Lifetime, of customer: Customer, bundleID: String) {
        productID = bundleID + "." + SubscriptionProduct.lifetimeSuffix
        transactionID = customer.ids.lifetimeTransactionID
        originalTransactionID = transactionID
        purchase = lifetime.purchase
        originalPurchase = lifetime.purchase
    }

    init(period: Period, of customer: Customer, bundleID: String, seen: Seen) {
        let ids = customer.ids
        let script = customer.life.script
        productID = period.product.identifier(in: bundleID)
        originalTransactionID = ids.originalTransactionID
        purchase = period.purchase
        isTrial = period.isTrial
        webOrderLineItemID = script.isFamilyShared ? nil : ids.webOrderLineItemID(of: period.ordinal)
        ownership = script.isFamilyShared ? "FAMILY_SHARED" : "PURCHASED"
        let chainStart = (customer.life.periods.first?.purchase ?? period.purchase) + 2000
        switch seen {
        case .onDevice(let creation):
            // A restore gives the device's rows ids of their own and its own moment.
            transactionID =
                script.hasRestored
                ? ids.restoredTransactionID(of: period.ordinal) : ids.transactionID(of: period.ordinal)
            originalPurchase = script.hasRestored ? creation.wholeSecond : chainStart
            expires = period.expires(asOf: creation)
            cancellation = period.cancellation(asOf: creation)
        case .byServer:
            transactionID = ids.transactionID(of: period.ordinal)
            originalPurchase = chainStart
            expires = period.expires
            cancellation = period.cancellation
            groupID = SubscriptionProduct.groupID
            showsUpgrade = period.cancellation?.isUpgrade ?? false
            // Upgraded rows of the sandbox were seen without a cancellation date.
            showsCancellationDate = !(showsUpgrade && customer.environment == .sandbox)
        }
    }

    func write(to json: inout JSONWriter) {
        json.text("quantity", "1")
        json.text("product_id", productID)
        json.text("transaction_id", transactionID)
        json.text("original_transaction_id", originalTransactionID)
        json.date("purchase_date", purchase)
        json.date("original_purchase_date", originalPurchase)
        if let expires { json.date("expires_date", expires) }
        if let webOrderLineItemID { json.text("web_order_line_item_id", webOrderLineItemID) }
        json.text("is_trial_period", isTrial ? "true" : "false")
        if expires != nil { json.text("is_in_intro_offer_period", "false") }
        if let groupID { json.text("subscription_group_identifier", groupID) }
        json.text("in_app_ownership_type", ownership)
        if let cancellation, showsCancellationDate {
            json.date("cancellation_date", cancellation.at)
            json.text("cancellation_reason", String(cancellation.reason))
        }
        if showsUpgrade { json.text("is_upgraded", "true") }
    }
}
