package import AppStore
package import Subscriptions

extension TransactionRow {
    /// Creates the row that a signed transaction states. Texts are made storable.
    init(_ signed: SignedTransaction, path: String) {
        self.init(
            path: path, source: .signedText, asOf: Instant(milliseconds: signed.signedAt),
            transactionID: TransactionID(signed.transactionID.storable),
            originalTransactionID: OriginalTransactionID(signed.originalTransactionID.storable),
            webOrderLineItemID: signed.webOrderLineItemID.map { WebOrderLineItemID($0.storable) },
            productID: ProductID(signed.productID.storable), quantity: signed.quantity,
            purchasedAt: Instant(milliseconds: signed.purchasedAt),
            originalPurchasedAt: signed.originalPurchasedAt.map(Instant.init(milliseconds:)),
            expiresAt: signed.expiresAt.map(Instant.init(milliseconds:)),
            cancelledAt: signed.revokedAt.map(Instant.init(milliseconds:)),
            cancellationReason: signed.revocationReason?.storable, isUpgraded: signed.isUpgraded,
            isTrial: signed.isTrial, isIntro: signed.isIntro, promotionalOfferID: signed.promotionalOfferID?.storable,
            offerCodeRefName: signed.offerCodeRefName?.storable,
            groupID: signed.subscriptionGroupIdentifier.map { SubscriptionGroupID($0.storable) },
            ownership: signed.ownershipType.map { Ownership(raw: $0.storable) },
            appAccountToken: signed.appAccountToken?.storable, price: Price(signed),
            revocationPercentage: signed.revocationPercentage)
    }
}

extension RenewalRow {
    /// Creates the row that signed renewal information states. Texts are made storable.
    ///
    /// - Parameters:
    ///   - status: Apple's status of the subscription, where it stands beside the text.
    ///   - transaction: The transaction beside it. A plan that is paid monthly has no grace.
    init(_ signed: SignedRenewal, path: String, status: AppleStatus?, beside transaction: SignedTransaction?) {
        self.init(
            path: path, asOf: Instant(milliseconds: signed.signedAt),
            originalTransactionID: OriginalTransactionID(signed.originalTransactionID.storable),
            renewal: Renewal(
                productID: ProductID(signed.productID.storable),
                renewsToProductID: signed.autoRenewProductID.map { ProductID($0.storable) },
                willRenew: signed.autoRenewStatus, expirationIntent: signed.expirationIntent?.storable,
                inBillingRetry: signed.isInBillingRetry,
                graceExpiresAt: signed.graceExpiresAt.map(Instant.init(milliseconds:)),
                priceIncreaseStatus: signed.priceIncreaseStatus?.storable,
                promotionalOfferID: signed.promotionalOfferID?.storable,
                offerCodeRefName: signed.offerCodeRefName?.storable,
                isInGraceByStatus: status == .gracePeriod && signed.graceExpiresAt == nil
                    && transaction?.billingPlanType != "MONTHLY"),
            periodEndsAt: signed.renewalAt.map(Instant.init(milliseconds:)))
    }
}

extension Price {
    /// Creates the price of a transaction; nil where the text gives none.
    fileprivate init?(_ signed: SignedTransaction) {
        guard let price = signed.price, let currency = signed.currency else { return nil }
        self.init(milliunits: price, currency: currency.storable)
    }
}

extension Evidence {
    /// Reads what a notification states; nil if it holds neither a transaction nor renewal information. It is no answer: it
    /// only adds details to answers.
    package init?(in notification: SignedNotification, environment: StoreEnvironment) {
        let root = "notification."
        let transaction = notification.transaction.map {
            TransactionRow($0, path: root + "signedTransactionInfo")
        }
        let renewal = notification.renewal.map {
            RenewalRow(
                $0, path: root + "signedRenewalInfo",
                status: notification.status.flatMap(AppleStatus.init(rawValue:)), beside: notification.transaction)
        }
        guard let asOf = [transaction?.asOf, renewal?.asOf].compactMap(\.self).min() else { return nil }
        self.init(
            environment: environment, bundleID: notification.bundleID.map { BundleID($0.storable) }, asOf: asOf,
            transactions: [transaction].compactMap(\.self), renewals: [renewal].compactMap(\.self))
    }
}
