/// One row of `in_app` or `latest_receipt_info`. Numbers and booleans are strings.
struct TransactionRow: Sendable {
    enum Seen: Sendable {
        /// The device's view when its receipt was made.
        case onDevice(ReceiptIdentity)
        case byServer
    }

    private struct Cancellation {
        let at: StoreTime
        let reason: Int

        init(_ cancellation: Period.Cancellation) {
            at = cancellation.at
            reason = cancellation.reason
        }

        init(refundAt at: StoreTime) {
            self.at = at
            reason = 0
        }
    }

    private let productID: String
    private var quantity = PurchaseQuantity.one
    private let transactionID: String
    private let originalTransactionID: String
    private let purchase: StoreTime
    private let originalPurchase: StoreTime
    private var expires: StoreTime?
    private var webOrderLineItemID: String?
    private var offer: PeriodOffer?
    private var offerID: String?
    private var groupID: String?
    private var ownership = "PURCHASED"
    private var cancellation: Cancellation?
    private var showsUpgrade = false
    private let isFromServer: Bool
    /// A UUID, or nil when the app gave none.
    var accountToken: String?
    /// Whether some usual keys are missing.
    var leavesKeysOut = false

    init(purchase: OneTimePurchase, of account: Account, seen: Seen, bundleID: String) {
        productID = purchase.product.identifier(in: bundleID)
        quantity = purchase.order.quantity
        originalTransactionID = account.ids.purchase(purchase.ordinal)
        originalPurchase = purchase.at
        isFromServer = false
        switch seen {
        case .onDevice(let identity):
            // A restore gives the device's row its own id and its own date.
            let restoredAt = account.restored(purchase, in: identity)
            transactionID = account.ids.purchase(purchase.ordinal, restore: restoredAt == nil ? 0 : identity.restore)
            self.purchase = restoredAt?.wholeSecond ?? purchase.at
            cancellation = purchase.refund(asOf: identity.creation).map { Cancellation(refundAt: $0) }
        case .byServer:
            transactionID = originalTransactionID
            self.purchase = purchase.at
            cancellation = purchase.refund(asOf: account.now).map { Cancellation(refundAt: $0) }
        }
    }

    init(period: Period, of life: Life, bundleID: String, seen: Seen) {
        let ids = life.ids
        productID = period.product.identifier(in: bundleID)
        originalTransactionID = ids.originalTransactionID
        purchase = period.purchase
        offer = period.offer
        offerID = period.offerID
        webOrderLineItemID = life.script.isMember ? nil : ids.webOrderLineItemID(of: period.ordinal)
        ownership = life.script.ownership
        switch seen {
        case .onDevice(let identity):
            // A restore gives the device's rows their own ids and their own date.
            transactionID = ids.transactionID(of: period.ordinal, restore: identity.restore)
            originalPurchase = identity.restore > 0 ? identity.creation.wholeSecond : life.originalPurchase
            expires = period.expires(asOf: identity.creation)
            cancellation = period.cancellation(asOf: identity.creation).map(Cancellation.init)
            isFromServer = false
        case .byServer:
            transactionID = ids.transactionID(of: period.ordinal)
            originalPurchase = life.originalPurchase
            expires = period.expires
            groupID = period.product.groupID
            showsUpgrade = period.cancellation?.isUpgrade ?? false
            // Upgraded rows of the sandbox were observed without a cancellation date.
            let isBare = showsUpgrade && life.environment == .sandbox
            cancellation = isBare ? nil : period.cancellation.map(Cancellation.init)
            isFromServer = true
        }
    }

    func write(to json: inout JSONWriter) {
        json.rowNumber("quantity", String(quantity.count))
        json.text("product_id", productID)
        json.text("transaction_id", transactionID)
        json.rowNumber("original_transaction_id", originalTransactionID)
        json.date("purchase_date", purchase)
        json.date("original_purchase_date", originalPurchase)
        if let expires { json.date("expires_date", expires) }
        if let webOrderLineItemID { json.text("web_order_line_item_id", webOrderLineItemID) }
        json.rowBoolean("is_trial_period", offer == .freeTrial)
        if expires != nil, !leavesKeysOut {
            json.rowBoolean("is_in_intro_offer_period", offer?.isPaidIntroduction ?? false)
        }
        if let groupID, !leavesKeysOut { json.text("subscription_group_identifier", groupID) }
        if !leavesKeysOut || ownership != "PURCHASED" { json.text("in_app_ownership_type", ownership) }
        if offer == .promotional { json.text("promotional_offer_id", offerID ?? PeriodOffer.promotionalOfferID) }
        if offer == .offerCode, isFromServer { json.text("offer_code_ref_name", PeriodOffer.offerCodeName) }
        if let accountToken { json.text("app_account_token", accountToken) }
        if let cancellation {
            json.date("cancellation_date", cancellation.at)
            json.rowNumber("cancellation_reason", String(cancellation.reason))
        }
        if showsUpgrade { json.rowBoolean("is_upgraded", true) }
    }
}

/// The row of `pending_renewal_info`: the store's plan for the next renewal, or why renewals stopped.
struct PendingRenewal: Sendable {
    let bundleID: String
    let life: Life

    func write(to json: inout JSONWriter) {
        guard let head = life.periods.last else { return }
        json.object { json in
            json.text("auto_renew_product_id", life.nextPaidProduct.identifier(in: bundleID))
            json.text("product_id", head.product.identifier(in: bundleID))
            json.rowNumber("original_transaction_id", life.ids.originalTransactionID)
            json.rowNumber("auto_renew_status", life.nextPaymentIsOn ? "1" : "0")
            if let intent = life.expirationIntent { json.text("expiration_intent", String(intent)) }
            switch life.phase {
            case .subscribed: break
            case .retrying: json.text("is_in_billing_retry_period", "1")
            case .ended(let intent, _):
                if intent != nil { json.text("is_in_billing_retry_period", "0") }
            }
            // The grace fields stay after the grace period, until a charge succeeds.
            if let graceUntil = life.graceUntil { json.date("grace_period_expires_date", graceUntil) }
            if let consent = life.priceConsent {
                json.text("price_consent_status", consent.status)
                json.text("price_increase_status", consent.status)
            }
            guard life.renewalIsOn else { return }
            switch life.offerBalance?.offer {
            case .promotional:
                json.text("promotional_offer_id", life.offerBalance?.id ?? PeriodOffer.promotionalOfferID)
            case .offerCode: json.text("offer_code_ref_name", PeriodOffer.offerCodeName)
            case .freeTrial, .payAsYouGo, .payUpFront, nil: break
            }
        }
    }
}

extension Life {
    /// Apple's code for why the subscription ended or is in retry.
    var expirationIntent: Int? {
        switch phase {
        case .subscribed: nil
        case .retrying: 2
        case .ended(let intent, _): intent
        }
    }

    var graceUntil: StoreTime? {
        switch phase {
        case .subscribed: nil
        case .retrying(let graceUntil, _, _), .ended(_, let graceUntil): graceUntil
        }
    }

    var isInRetry: Bool {
        switch phase {
        case .retrying: true
        case .subscribed, .ended: false
        }
    }
}
