/// The claims of Apple's signed texts that this version knows, up to App Store Server API 1.23: those that it reads, and
/// those that it leaves in the stored texts. What is not here, or is of another form, is counted as unread.
enum KnownClaims {
    /// The form of a claim's value.
    indirect enum Form: Sendable {
        /// Its value is not looked into.
        case any
        case text
        case flag
        /// Milliseconds since 1970.
        case instant
        case number(ClosedRange<Int64>)
        /// One of these words, or of these numbers.
        case word(Set<String>)
        case object([String: Form])
        case list(Form)
    }

    /// The claims of a kind of text.
    static func of(_ kind: UnreadClaim.Kind) -> [String: Form] {
        switch kind {
        case .transaction: transaction
        case .renewal: renewal
        case .notification: notification
        }
    }

    private static let amount = Form.number(0...Int64.max)
    private static let count = Form.number(1...1_000_000)
    private static let environments = Form.word(["Production", "Sandbox", "Xcode", "LocalTesting"])
    private static let plans = Form.word(["BILLED_UPFRONT", "MONTHLY"])
    private static let tiers = Form.list(.object(["price": amount, "quantity": count]))

    /// Claims of transactions and of renewals.
    private static let shared: [String: Form] = [
        "advancedCommerceInfo": .any, "appAccountToken": .text, "appTransactionId": .text, "currency": .text,
        "deviceVerification": .any, "deviceVerificationNonce": .any, "environment": environments,
        "offerDiscountType": .word(["FREE_TRIAL", "PAY_AS_YOU_GO", "PAY_UP_FRONT", "ONE_TIME"]),
        "offerIdentifier": .text, "offerPeriod": .text, "offerType": .word(["1", "2", "3", "4"]),
        "originalTransactionId": .text, "productId": .text, "signedDate": .instant,
    ]

    private static let transaction = shared.merging(ofTransactions) { $1 }
    private static let renewal = shared.merging(ofRenewals) { $1 }

    private static let ofTransactions: [String: Form] = [
        "additionalTransactionReason": .word(["SEAT_ADDITION"]), "billingPlanType": plans, "bundleId": .text,
        "commitmentInfo": .object([
            "billingPeriodNumber": count, "totalBillingPeriods": count, "commitmentExpiresDate": .instant,
            "commitmentPrice": amount,
        ]),
        "expiresDate": .instant, "inAppOwnershipType": .word(["PURCHASED", "FAMILY_SHARED", "ASSIGNED"]),
        "isUpgraded": .flag,
        "multiSeatInfo": .object([
            "invitationManagement": .word(["APPLE", "DEVELOPER"]), "priceTiers": tiers,
            "revokedSeatQuantity": .number(0...1_000_000),
        ]),
        "originalPurchaseDate": .instant, "previousOriginalTransactionId": .text, "price": amount,
        "purchaseDate": .instant, "quantity": count, "revocationDate": .instant,
        "revocationPercentage": .number(0...100_000), "revocationReason": .word(["0", "1"]),
        "revocationType": .word(["REFUND_FULL", "REFUND_PRORATED", "FAMILY_REVOKE"]), "storefront": .text,
        "storefrontId": .text, "subscriptionGroupIdentifier": .text, "transactionId": .text,
        "transactionReason": .word(["PURCHASE", "RENEWAL"]),
        "type": .word([
            "Auto-Renewable Subscription", "Non-Consumable", "Consumable", "Non-Renewing Subscription",
        ]),
        "webOrderLineItemId": .text,
    ]

    private static let ofRenewals: [String: Form] = [
        "autoRenewProductId": .text, "autoRenewStatus": .flag,
        "commitmentInfo": .object([
            "commitmentAutoRenewStatus": .flag, "commitmentAutoRenewProductId": .text,
            "commitmentRenewalDate": .instant, "commitmentRenewalPrice": amount,
            "commitmentRenewalBillingPlanType": plans,
        ]),
        "eligibleWinBackOfferIds": .list(.text), "expirationIntent": .word(["1", "2", "3", "4", "5"]),
        "gracePeriodExpiresDate": .instant, "isInBillingRetryPeriod": .flag,
        "multiSeatInfo": .object([
            "invitationManagement": .word(["APPLE", "DEVELOPER"]), "renewalPriceTiers": tiers,
        ]),
        "priceIncreaseStatus": .word(["0", "1"]), "recentSubscriptionStartDate": .instant,
        "renewalBillingPlanType": plans, "renewalDate": .instant, "renewalPrice": amount, "renewalQuantity": count,
    ]

    private static let notification: [String: Form] = [
        "appData": .object([
            "appAppleId": .text, "bundleId": .text, "environment": environments, "signedAppTransactionInfo": .any,
        ]),
        "data": .object([
            "appAppleId": .text, "bundleId": .text, "bundleVersion": .any,
            "consumptionRequestReason": .word([
                "UNINTENDED_PURCHASE", "FULFILLMENT_ISSUE", "UNSATISFIED_WITH_PURCHASE", "LEGAL", "OTHER",
            ]),
            "environment": environments, "signedRenewalInfo": .any, "signedTransactionInfo": .any,
            "status": .word(["1", "2", "3", "4", "5"]),
        ]),
        "externalPurchaseToken": .any,
        "notificationType": .word([
            "CONSUMPTION_REQUEST", "DID_CHANGE_RENEWAL_PREF", "DID_CHANGE_RENEWAL_STATUS", "DID_FAIL_TO_RENEW",
            "DID_RENEW", "EXPIRED", "EXTERNAL_PURCHASE_TOKEN", "GRACE_PERIOD_EXPIRED", "METADATA_UPDATE", "MIGRATION",
            "OFFER_REDEEMED", "ONE_TIME_CHARGE", "PRICE_CHANGE", "PRICE_INCREASE", "REFUND", "REFUND_DECLINED",
            "REFUND_REVERSED", "RENEWAL_EXTENDED", "RENEWAL_EXTENSION", "RESCIND_CONSENT", "REVOKE", "SUBSCRIBED",
            "TEST", "UNCLAIM_SEATS",
        ]),
        "notificationUUID": .text, "signedDate": .instant,
        "subtype": .word([
            "ACCEPTED", "ACTIVE_TOKEN_REMINDER", "AUTO_RENEW_DISABLED", "AUTO_RENEW_ENABLED", "BILLING_RECOVERY",
            "BILLING_RETRY", "CREATED", "DECREASE_QUANTITY", "DOWNGRADE", "FAILURE", "GRACE_PERIOD",
            "INCREASE_QUANTITY", "INITIAL_BUY", "PENDING", "PRICE_INCREASE", "PRODUCT_NOT_FOR_SALE", "RESUBSCRIBE",
            "SEATS", "SUMMARY", "UNREPORTED", "UPGRADE", "VOLUNTARY",
        ]),
        "summary": .object([
            "appAppleId": .text, "bundleId": .text, "environment": environments, "failedCount": .number(0...Int64.max),
            "productId": .text, "requestIdentifier": .text, "storefrontCountryCodes": .list(.text),
            "succeededCount": .number(0...Int64.max),
        ]),
        "unclaimInfo": .any, "version": .text,
    ]
}
