/// The members we read from Apple's objects, wherever they occur. Dates are `AnswerDate`.
enum AnswerField: Int, CaseIterable {
    // The answer.
    case status, environment, exception, isRetryable, isRetryableUnderscored
    case receipt, latestReceipt, latestReceiptInfo, latestExpiredReceiptInfo, pendingRenewalInfo
    // The receipt.
    case bundleID, bid, inApp
    // A transaction.
    case quantity, productID, transactionID, originalTransactionID, webOrderLineItemID, cancellationReason
    case isTrialPeriod, isInIntroOfferPeriod, isUpgraded, promotionalOfferID, offerCodeRefName
    case subscriptionGroupIdentifier, ownershipType, appAccountToken
    // A renewal.
    case autoRenewStatus, autoRenewProductID, expirationIntent, isInBillingRetryPeriod
    case priceConsentStatus, priceIncreaseStatus

    /// The key on the wire.
    var name: String {
        switch self {
        case .status: "status"
        case .environment: "environment"
        case .exception: "exception"
        case .isRetryable: "is-retryable"
        case .isRetryableUnderscored: "is_retryable"
        case .receipt: "receipt"
        case .latestReceipt: "latest_receipt"
        case .latestReceiptInfo: "latest_receipt_info"
        case .latestExpiredReceiptInfo: "latest_expired_receipt_info"
        case .pendingRenewalInfo: "pending_renewal_info"
        case .bundleID: "bundle_id"
        case .bid: "bid"
        case .inApp: "in_app"
        case .quantity: "quantity"
        case .productID: "product_id"
        case .transactionID: "transaction_id"
        case .originalTransactionID: "original_transaction_id"
        case .webOrderLineItemID: "web_order_line_item_id"
        case .cancellationReason: "cancellation_reason"
        case .isTrialPeriod: "is_trial_period"
        case .isInIntroOfferPeriod: "is_in_intro_offer_period"
        case .isUpgraded: "is_upgraded"
        case .promotionalOfferID: "promotional_offer_id"
        case .offerCodeRefName: "offer_code_ref_name"
        case .subscriptionGroupIdentifier: "subscription_group_identifier"
        case .ownershipType: "in_app_ownership_type"
        case .appAccountToken: "app_account_token"
        case .autoRenewStatus: "auto_renew_status"
        case .autoRenewProductID: "auto_renew_product_id"
        case .expirationIntent: "expiration_intent"
        case .isInBillingRetryPeriod: "is_in_billing_retry_period"
        case .priceConsentStatus: "price_consent_status"
        case .priceIncreaseStatus: "price_increase_status"
        }
    }

    /// The slot of this field in `LenientFields`.
    var slot: Int { rawValue }
}

/// The instants we read. Each has up to four members, one for every form in which Apple writes it.
enum AnswerDate: Int, CaseIterable {
    case receiptCreation, request, purchase, originalPurchase, expires, cancellation, gracePeriodExpires

    /// The forms, in storage order.
    enum Form: Int, CaseIterable {
        case plain, milliseconds, pacific, formatted

        var suffix: String {
            switch self {
            case .plain: ""
            case .milliseconds: "_ms"
            case .pacific: "_pst"
            case .formatted: "_formatted"
            }
        }
    }

    /// The key of the plain form on the wire.
    var name: String {
        switch self {
        case .receiptCreation: "receipt_creation_date"
        case .request: "request_date"
        case .purchase: "purchase_date"
        case .originalPurchase: "original_purchase_date"
        case .expires: "expires_date"
        case .cancellation: "cancellation_date"
        case .gracePeriodExpires: "grace_period_expires_date"
        }
    }

    /// Returns the slot of one form in `LenientFields`: after all the plain fields.
    func slot(_ form: Form) -> Int {
        AnswerField.allCases.count + rawValue * Form.allCases.count + form.rawValue
    }
}
