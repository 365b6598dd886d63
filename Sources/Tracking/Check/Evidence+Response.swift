import AppStore
import Subscriptions

extension Evidence {
    /// Reads the evidence in an answer that Apple vouches for.
    ///
    /// Rows of `latest_receipt_info` and `pending_renewal_info` are valid for `asOf`, rows of `in_app` for
    /// `receipt_creation_date`: a receipt is never created later than the request about it. Texts are made storable.
    init(in response: VerifyReceiptResponse, from endpoint: Endpoint, asOf: Instant, clockAhead: Delay?) {
        let createdAt = response.receiptCreatedAt.map { min(Instant(milliseconds: $0), asOf) }
        let device = createdAt ?? asOf
        self.init(
            environment: StoreEnvironment(named: response.environment) ?? StoreEnvironment(endpoint),
            bundleID: response.bundleID.map { BundleID($0.storable) },
            asOf: asOf,
            receiptCreatedAt: createdAt, clockAhead: clockAhead,
            transactions: response.latestReceiptInfo.map { TransactionRow($0, .latestReceiptInfo, asOf: asOf) }
                + response.inApp.map { TransactionRow($0, .deviceReceipt, asOf: device) },
            renewals: response.renewals.map { RenewalRow($0, asOf: asOf) },
            isComplete: response.isComplete)
    }
}

extension StoreEnvironment {
    /// Parses Apple's name of an environment; nil for any other name.
    package init?(named name: String?) {
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
            transactionID: TransactionID(fields.transactionID.storable),
            originalTransactionID: OriginalTransactionID(fields.originalTransactionID.storable),
            webOrderLineItemID: fields.webOrderLineItemID.map { WebOrderLineItemID($0.storable) },
            productID: ProductID(fields.productID.storable), quantity: fields.quantity,
            purchasedAt: Instant(milliseconds: fields.purchasedAt),
            originalPurchasedAt: fields.originalPurchasedAt.map(Instant.init(milliseconds:)),
            expiresAt: fields.expiresAt.map(Instant.init(milliseconds:)),
            cancelledAt: fields.cancelledAt.map(Instant.init(milliseconds:)),
            cancellationReason: fields.cancellationReason?.storable,
            isUpgraded: fields.isUpgraded, isTrial: fields.isTrialPeriod, isIntro: fields.isInIntroOfferPeriod,
            promotionalOfferID: fields.promotionalOfferID?.storable,
            offerCodeRefName: fields.offerCodeRefName?.storable,
            groupID: fields.subscriptionGroupIdentifier.map { SubscriptionGroupID($0.storable) },
            ownership: fields.ownershipType.map { Ownership(raw: $0.storable) },
            appAccountToken: fields.appAccountToken?.storable, expiryForm: fields.expiryForm.map(InstantForm.init),
            cancellationForm: fields.cancellationForm.map(InstantForm.init))
    }
}

extension RenewalRow {
    fileprivate init(_ fields: RenewalFields, asOf: Instant) {
        self.init(
            path: fields.path, asOf: asOf,
            originalTransactionID: OriginalTransactionID(fields.originalTransactionID.storable),
            renewal: Renewal(
                productID: ProductID(fields.productID.storable),
                renewsToProductID: fields.autoRenewProductID.map { ProductID($0.storable) },
                willRenew: fields.autoRenewStatus, expirationIntent: fields.expirationIntent?.storable,
                inBillingRetry: fields.isInBillingRetry,
                graceExpiresAt: fields.graceExpiresAt.map(Instant.init(milliseconds:)),
                priceConsentStatus: fields.priceConsentStatus?.storable,
                priceIncreaseStatus: fields.priceIncreaseStatus?.storable,
                promotionalOfferID: fields.promotionalOfferID?.storable,
                offerCodeRefName: fields.offerCodeRefName?.storable),
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
