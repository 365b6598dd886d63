package import AppStore
package import Subscriptions

extension TransactionRow {
    /// Creates the row that a signed transaction states. Texts are made storable.
    init(_ signed: SignedTransaction, path: String) {
        self.init(
            path: path, source: .signedText, asOf: Instant(milliseconds: signed.signedAt),
            transactionID: TransactionID(signed.transactionID.storable),
            originalTransactionID: OriginalTransactionID(signed.originalTransactionID.storable),
            // Whether the transactions of one period share a line item is not known, and they are never one.
            webOrderLineItemID: signed.isOneOfSeveral
                ? nil : signed.webOrderLineItemID.map { WebOrderLineItemID($0.storable) },
            productID: ProductID(signed.productID.storable), quantity: signed.quantity,
            purchasedAt: Instant(milliseconds: signed.purchasedAt),
            originalPurchasedAt: signed.originalPurchasedAt.map(Instant.init(milliseconds:)),
            expiresAt: signed.expiresAt.map(Instant.init(milliseconds:)),
            cancelledAt: signed.revokedAt.map(Instant.init(milliseconds:)),
            cancellationReason: signed.reasonOfRevocation?.storable, isUpgraded: signed.isUpgraded,
            isTrial: signed.isTrial, isIntro: signed.isIntro, promotionalOfferID: signed.promotionalOfferID?.storable,
            offerCodeRefName: signed.offerCodeRefName?.storable,
            groupID: signed.subscriptionGroupIdentifier.map { SubscriptionGroupID($0.storable) },
            ownership: signed.ownershipType.map { Ownership(raw: $0.storable) },
            appAccountToken: signed.appAccountToken?.storable, price: Price(signed),
            revocationPercentage: signed.revocationPercentage, sale: Sale(signed).ifStated)
    }
}

extension SignedTransaction {
    /// Why it was taken back. A one-time purchase has no ``Sale``; where the kind of its revocation leaves the amount
    /// unknown, the kind is the reason, and no amount follows from it.
    fileprivate var reasonOfRevocation: String? {
        switch revocationType {
        case nil, "REFUND_FULL", "FAMILY_REVOKE": revocationReason
        case "REFUND_PRORATED" where revocationPercentage != nil: revocationReason
        case let kind: expiresAt == nil ? kind : revocationReason
        }
    }
}

extension Sale {
    /// Creates what a signed transaction states of its sale.
    fileprivate init(_ signed: SignedTransaction) {
        self.init(
            plan: signed.billingPlanType?.storable,
            payment: signed.payment.map {
                Payment(
                    number: $0.number, total: $0.total, termEndsAt: Instant(milliseconds: $0.termEndsAt),
                    termPrice: $0.termPrice)
            },
            seats: signed.revokedSeats.map { Seats(count: signed.quantity, revoked: $0) },
            isOneOfSeveral: signed.isOneOfSeveral, revocationType: signed.revocationType?.storable)
    }
}

extension TermWill {
    /// Creates what renewal information states about the time after the next payment; nil where it knows no plans, so that
    /// it denies nothing.
    fileprivate init?(_ signed: SignedRenewal, beside transaction: SignedTransaction?) {
        if let term = signed.term {
            self.init(
                renews: term.renews, productID: term.productID.map { ProductID($0.storable) }, plan: term.plan?.storable
            )
        } else if signed.renewalPlan != nil || transaction?.billingPlanType == Sale.monthly {
            let isMonthly = signed.renewalPlan == Sale.monthly && transaction?.billingPlanType != Sale.monthly
            self.init(plan: isMonthly ? Sale.monthly : nil)
        } else {
            return nil
        }
    }
}

extension SignedRenewal {
    /// Returns whether Apple will try the next payment. After the last payment of a term that is the customer's will, even
    /// if Apple's status says otherwise.
    fileprivate func triesNextPayment(beside transaction: SignedTransaction?) -> Bool? {
        guard let payment = transaction?.payment, payment.number >= payment.total, term?.renews == false else {
            return autoRenewStatus
        }
        return false
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
                willRenew: signed.triesNextPayment(beside: transaction),
                expirationIntent: signed.expirationIntent?.storable,
                inBillingRetry: signed.isInBillingRetry,
                graceExpiresAt: signed.graceExpiresAt.map(Instant.init(milliseconds:)),
                priceIncreaseStatus: signed.priceIncreaseStatus?.storable,
                promotionalOfferID: signed.promotionalOfferID?.storable,
                offerCodeRefName: signed.offerCodeRefName?.storable,
                isInGraceByStatus: status == .gracePeriod && signed.graceExpiresAt == nil
                    && transaction?.billingPlanType != Sale.monthly,
                term: TermWill(signed, beside: transaction)),
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
