import AppStore
import Subscriptions

extension Evidence {
    /// The evidence in an answer Apple vouches for.
    ///
    /// Rows of `latest_receipt_info` and `pending_renewal_info` speak for `request_date`, rows of `in_app` for
    /// `receipt_creation_date`; an answer with neither speaks for `clock`.
    init(in response: VerifyReceiptResponse, from endpoint: Endpoint, clock: Instant) {
        let asOf = response.requestedAt.map(Instant.init(milliseconds:)) ?? clock
        let createdAt = response.receiptCreatedAt.map(Instant.init(milliseconds:))
        let device = min(createdAt ?? asOf, asOf)
        self.init(
            environment: StoreEnvironment(named: response.environment) ?? StoreEnvironment(endpoint),
            bundleID: response.bundleID.map { BundleID($0) },
            asOf: asOf,
            receiptCreatedAt: createdAt,
            transactions: response.latestReceiptInfo.map { TransactionRow($0, .latestReceiptInfo, asOf: asOf) }
                + response.inApp.map { TransactionRow($0, .deviceReceipt, asOf: device) },
            renewals: response.renewals.map { RenewalRow($0, asOf: asOf) },
            isComplete: response.isComplete)
    }
}

extension StoreEnvironment {
    /// The environment of Apple's name for it; nil for any other name.
    public init?(named name: String?) {
        switch name?.lowercased() {
        case "production": self = .production
        case "sandbox": self = .sandbox
        default: return nil
        }
    }

    init(_ endpoint: Endpoint) {
        switch endpoint {
        case .production: self = .production
        case .sandbox: self = .sandbox
        }
    }
}

extension Endpoint {
    init(_ environment: StoreEnvironment) {
        switch environment {
        case .production: self = .production
        case .sandbox: self = .sandbox
        }
    }
}

extension TransactionRow {
    fileprivate init(_ fields: TransactionFields, _ source: EvidenceSource, asOf: Instant) {
        self.init(
            path: fields.path, source: source, asOf: asOf,
            transactionID: TransactionID(fields.transactionID),
            originalTransactionID: OriginalTransactionID(fields.originalTransactionID),
            webOrderLineItemID: fields.webOrderLineItemID.map { WebOrderLineItemID($0) },
            productID: ProductID(fields.productID), quantity: fields.quantity,
            purchasedAt: Instant(milliseconds: fields.purchasedAt),
            originalPurchasedAt: fields.originalPurchasedAt.map(Instant.init(milliseconds:)),
            expiresAt: fields.expiresAt.map(Instant.init(milliseconds:)),
            cancelledAt: fields.cancelledAt.map(Instant.init(milliseconds:)),
            cancellationReason: fields.cancellationReason,
            isUpgraded: fields.isUpgraded, isTrial: fields.isTrialPeriod, isIntro: fields.isInIntroOfferPeriod,
            promotionalOfferID: fields.promotionalOfferID, offerCodeRefName: fields.offerCodeRefName,
            groupID: fields.subscriptionGroupIdentifier.map { SubscriptionGroupID($0) },
            ownership: fields.ownershipType.map(Ownership.init(raw:)),
            appAccountToken: fields.appAccountToken, expiryForm: fields.expiryForm.map(InstantForm.init),
            cancellationForm: fields.cancellationForm.map(InstantForm.init))
    }
}

extension RenewalRow {
    fileprivate init(_ fields: RenewalFields, asOf: Instant) {
        self.init(
            path: fields.path, asOf: asOf,
            originalTransactionID: OriginalTransactionID(fields.originalTransactionID),
            renewal: Renewal(
                productID: ProductID(fields.productID),
                renewsToProductID: fields.autoRenewProductID.map { ProductID($0) },
                willRenew: fields.autoRenewStatus, expirationIntent: fields.expirationIntent,
                inBillingRetry: fields.isInBillingRetry,
                graceExpiresAt: fields.graceExpiresAt.map(Instant.init(milliseconds:)),
                priceConsentStatus: fields.priceConsentStatus, priceIncreaseStatus: fields.priceIncreaseStatus,
                promotionalOfferID: fields.promotionalOfferID, offerCodeRefName: fields.offerCodeRefName),
            graceForm: fields.graceForm.map(InstantForm.init))
    }
}

extension InstantForm {
    fileprivate init(_ form: DateForm) {
        switch form {
        case .milliseconds: self = .milliseconds
        case .plain: self = .plain
        case .text: self = .text
        case .formatted: self = .formatted
        }
    }
}
