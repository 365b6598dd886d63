package import AppStore
package import Subscriptions

extension Finding {
    /// Determines the outcome of an answer: applies the table of outcomes to one app.
    ///
    /// - Parameters:
    ///   - answer: Apple's answer, or the lack of one.
    ///   - bundleID: The app asked about; nil accepts every app, to explain a stray answer.
    ///   - clock: The instant that an answer without a clock of its own is valid for (legacy receipts).
    ///   - limit: How far Apple's clock is believed.
    package init(in answer: AppStoreAnswer, for bundleID: BundleID?, clock: Instant, limit: ClockLimit = .none) {
        guard let response = answer.response else {
            let reason = answer.failure ?? "Apple's answer is not one of verifyReceipt."
            self = .indeterminate(
                CheckFailure(
                    reason: reason, status: nil, retryable: true, kind: answer.isHeldBack ? .heldBack : .noUsableAnswer)
            )
            return
        }
        if let http = answer.httpStatus, http != 200 {
            let reason = "Apple answered with HTTP status \(http)."
            self = .indeterminate(CheckFailure(reason: reason, status: response.status, retryable: true))
            return
        }
        self = Finding(
            in: response, from: answer.environment, for: bundleID,
            clock: AnswerClock(response.requestedAt, clock: clock, limit: limit))
    }

    private init(
        in response: VerifyReceiptResponse, from endpoint: Endpoint, for bundleID: BundleID?, clock: AnswerClock
    ) {
        guard let status = response.status else {
            self = .indeterminate(CheckFailure(reason: "Apple's answer has no status.", status: nil, retryable: true))
            return
        }
        switch StatusMeaning(status) {
        case .genuine:
            self = Finding(vouchedBy: response, from: endpoint, for: bundleID, clock: clock)
        case .genuineIfRows where !(response.latestReceiptInfo.isEmpty && response.inApp.isEmpty):
            self = Finding(vouchedBy: response, from: endpoint, for: bundleID, clock: clock)
        case .genuineIfRows:
            let reason = "Apple answered \(status) (expired) without the expired subscription."
            self = .indeterminate(CheckFailure(reason: reason, status: status, retryable: true))
        case .refused(let kind, let reason):
            let retryable = kind.isRetryable(response.isRetryable)
            self = .rejected(Refusal(reason: reason, status: status, retryable: retryable, kind: kind))
        case .failure(let reason):
            let flagged = (21100...21199).contains(status) ? response.isRetryable : nil
            let detail = response.exception.map { " (\($0.storable))" } ?? ""
            self = .indeterminate(CheckFailure(reason: reason + detail, status: status, retryable: flagged ?? true))
        }
    }

    private init(
        vouchedBy response: VerifyReceiptResponse, from endpoint: Endpoint, for bundleID: BundleID?, clock: AnswerClock
    ) {
        let named = response.bundleID.map { BundleID($0.storable) }
        if let bundleID, named != bundleID {
            let reason =
                named.map { "The app asked about is \(bundleID), the answer is for \($0)." }
                ?? "The app asked about is \(bundleID), the answer names no app."
            self = .rejected(Refusal(reason: reason, status: response.status, retryable: false, kind: .otherBundle))
            return
        }
        switch clock {
        case .believed(let asOf):
            self = .verified(Evidence(in: response, from: endpoint, asOf: asOf, clockAhead: nil))
        case .clamped(let asOf, let ahead):
            self = .verified(Evidence(in: response, from: endpoint, asOf: asOf, clockAhead: ahead))
        case .unbelievable(let ahead):
            self = .indeterminate(.clockAhead(by: ahead, status: response.status))
        }
    }
}

/// The meaning of Apple's status codes: https://developer.apple.com/documentation/appstorereceipts/status
private enum StatusMeaning {
    case genuine
    case genuineIfRows
    case refused(Refusal.Kind, String)
    case failure(String)

    init(_ status: Int) {
        switch status {
        case 0: self = .genuine
        case 21006: self = .genuineIfRows
        case 21000:
            self = .refused(.badRequest, "Apple could not read the request (21000); please report this as a bug.")
        case 21003: self = .refused(.notAuthentic, "Apple could not authenticate the receipt (21003).")
        case 21004:
            self = .refused(
                .wrongSecret,
                "The shared secret does not match the app (21004); set it with `perennial app rotate-secret`.")
        case 21007: self = .refused(.wrongEnvironment, "A sandbox receipt where production is asked for (21007).")
        case 21008: self = .refused(.wrongEnvironment, "A production receipt where the sandbox is asked for (21008).")
        case 21010: self = .refused(.accountGone, "The customer's Apple Account was not found or is deleted (21010).")
        case 21002: self = .failure("The receipt is malformed, or Apple has a temporary problem (21002).")
        case 21001, 21005, 21009, 21100...21199: self = .failure("Apple has a temporary problem (\(status)).")
        default: self = .failure("Apple answered with the unknown status \(status).")
        }
    }
}

extension Refusal.Kind {
    /// Returns whether asking again can help, given Apple's flag.
    fileprivate func isRetryable(_ flag: Bool?) -> Bool {
        switch self {
        case .notAuthentic, .unknownTransaction: true
        case .accountGone: flag ?? true
        case .otherBundle, .wrongSecret, .wrongEnvironment, .badRequest: false
        }
    }
}

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

extension EvidenceReader {
    /// Reads what is stored by the rules of this program.
    package static let present = EvidenceReader(answer: { $0.evidence }, notification: { $0.evidence })
}

extension KeptNotification {
    /// The evidence in the notification; nil where it holds none.
    var evidence: Evidence? {
        let notification =
            texts.flatMap(SignedNotification.init(packed:)) ?? claims.flatMap(SignedNotification.init(claims:))
        return notification.flatMap { Evidence(in: $0, environment: environment) }
    }
}

extension SignedReducer {
    /// Reduces what is stored where this program reads the same in it afterwards.
    package static let present = SignedReducer(
        notification: { kept in
            guard let claims = kept.texts.flatMap(SignedNotification.keptClaims(ofPacked:)) else { return nil }
            let after = SignedNotification(claims: claims).flatMap { Evidence(in: $0, environment: kept.environment) }
            // A notification that is no fact says nothing before and after; its claims stay for later versions.
            guard let before = kept.evidence else { return after == nil ? claims : nil }
            return after?.saysTheSame(as: before) == true ? claims : nil
        },
        answer: { kept in
            var reduced = kept
            reduced.body = ShortText.reducedStrings(of: kept.body)
            guard let before = kept.evidence, let after = reduced.evidence, after.saysTheSame(as: before) else {
                return nil
            }
            return reduced.body
        })
}

extension Evidence {
    fileprivate func saysTheSame(as other: Evidence) -> Bool {
        transactions == other.transactions && renewals == other.renewals && asOf == other.asOf
            && environment == other.environment && bundleID == other.bundleID && isComplete == other.isComplete
    }
}
