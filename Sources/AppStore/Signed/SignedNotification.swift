import JSON
package import Subscriptions

/// A notification of version 2 (Apple: "responseBodyV2DecodedPayload"), with the texts within it.
package struct SignedNotification: Sendable, Hashable {
    /// When it was signed.
    package let signedAt: Instant
    /// `notificationType`, raw.
    package let kind: String
    /// `subtype`, raw.
    package let subkind: String?
    /// `notificationUUID`: the same in every repetition.
    package let uuid: String
    /// `bundleId` of what it is about.
    package let bundleID: String?
    /// `appAppleId`; absent in the sandbox.
    package let appleAppID: String?
    /// `environment`, raw.
    package let environment: String?
    /// `status` of the subscription, 1 to 5.
    package let status: Int?
    /// What the transaction within it is about; nil without one.
    package let subject: SignedSubject?
    /// The transaction within it; nil without one, and where its row is ignored.
    package let transaction: SignedTransaction?
    /// The renewal information within it.
    package let renewal: SignedRenewal?

    /// Reads payloads that were verified when they came; nil if the outer one is no notification, or an inner one does not
    /// say what it is about.
    package init?(payload: [UInt8], transaction: [UInt8]?, renewal: [UInt8]?) {
        guard let fields = JSONObject(payload), let kind = fields.text("notificationType"),
            let uuid = fields.text("notificationUUID"), let signedAt = fields.instant("signedDate")
        else { return nil }
        let data = fields.object("data") ?? fields.object("summary") ?? fields.object("appData")
        self.signedAt = signedAt
        self.kind = kind
        self.uuid = uuid
        subkind = fields.text("subtype")
        bundleID = data?.text("bundleId")
        appleAppID = data?.text("appAppleId")
        environment = data?.text("environment")
        status = data?.integer("status").flatMap { Int(exactly: $0) }
        subject = transaction.flatMap(SignedSubject.init(payload:))
        self.transaction = transaction.flatMap {
            SignedTransaction(payload: $0, path: "notification.signedTransactionInfo")
        }
        self.renewal = renewal.flatMap { SignedRenewal(payload: $0, path: "notification.signedRenewalInfo") }
        guard (transaction == nil) == (subject == nil), (renewal == nil) == (self.renewal == nil) else { return nil }
    }
}

extension SignedNotification {
    /// Reads the claims that were kept of a notification: an object each for `notification`, `transaction` and `renewal`.
    package init?(claims: String) {
        guard let kept = JSONObject(Array(claims.utf8)), let payload = kept.bytes(ofObject: "notification") else {
            return nil
        }
        self.init(
            payload: payload, transaction: kept.bytes(ofObject: "transaction"),
            renewal: kept.bytes(ofObject: "renewal"))
    }
}

extension SignedText {
    /// The signed texts that a notification holds, in compact form, not verified.
    package var innerTexts: (transaction: String?, renewal: String?) {
        let data = JSONObject(payload)?.object("data")
        return (data?.text("signedTransactionInfo"), data?.text("signedRenewalInfo"))
    }
}

/// What a signed transaction is about, also where what it states cannot be read.
package struct SignedSubject: Sendable, Hashable {
    /// `transactionId`.
    package let transactionID: TransactionID
    /// `originalTransactionId`.
    package let originalTransactionID: OriginalTransactionID
    /// `bundleId`.
    package let bundleID: String?
    /// `environment`, raw.
    package let environment: String?
    /// `appAccountToken`.
    package let appAccountToken: String?

    /// Reads a payload that was verified when it came; nil if it names no transaction.
    package init?(payload: [UInt8]) {
        guard let fields = JSONObject(payload), let id = fields.word("transactionId") else { return nil }
        transactionID = TransactionID(id)
        originalTransactionID = OriginalTransactionID(fields.word("originalTransactionId") ?? id)
        bundleID = fields.text("bundleId")
        environment = fields.text("environment")
        appAccountToken = fields.word("appAccountToken")
    }
}

/// What a signed transaction states (Apple: "JWSTransactionDecodedPayload"). Unknown words stay raw.
package struct SignedTransaction: Sendable, Hashable {
    /// The row of a purchase or a period; it speaks for the instant at which the text was signed.
    package let row: TransactionRow
    /// `environment`, raw.
    package let environment: String?
    /// `type`, raw, such as Consumable.
    package let kind: String?
    /// `revocationReason`, raw.
    package let revocationReason: String?

    /// The kind of product that is never sold without an end.
    private static let autoRenewable = "Auto-Renewable Subscription"

    /// Reads the payload of a verified text; nil where its row is ignored.
    package init?(_ text: SignedText) {
        self.init(payload: text.payload, signedAt: Instant(milliseconds: text.signedAt))
    }

    /// Reads a payload that was verified when it came, at `path` in the answer; nil if it lacks a product, a
    /// transaction, a purchase instant or its own, or states an instant that cannot be read. Without its expiry a
    /// subscription would be a purchase and never end; without its revocation a refund would be missed. A product of
    /// any other kind has an end only where Apple states one.
    package init?(payload: [UInt8], signedAt: Instant? = nil, path: String = "") {
        guard let fields = JSONObject(payload), let transactionID = fields.word("transactionId"),
            let productID = fields.word("productId"), let purchasedAt = fields.instant("purchaseDate"),
            let signedAt = signedAt ?? fields.instant("signedDate")
        else { return nil }
        let (expiresAt, cancelledAt) = (fields.instant("expiresDate"), fields.instant("revocationDate"))
        guard expiresAt != nil || !fields.states("expiresDate") && !Self.needsExpiry(fields),
            cancelledAt != nil || !fields.states("revocationDate")
        else { return nil }
        environment = fields.text("environment")
        kind = fields.text("type")
        revocationReason = fields.text("revocationReason")
        let quantity = Self.quantity(fields)
        let offer = SignedOffer(fields, isFree: Self.amount(fields, quantity: quantity) == 0)
        let returned = Returned(fields, isPurchase: expiresAt == nil)
        let sale = Sale(fields, quantity: quantity, paidUntil: expiresAt, revocationType: returned.type)
        var row = TransactionRow(
            path: path, source: .signedText, asOf: signedAt, transactionID: TransactionID(transactionID),
            originalTransactionID: OriginalTransactionID(fields.word("originalTransactionId") ?? transactionID),
            productID: ProductID(productID), purchasedAt: purchasedAt)
        // Whether the transactions of one period share a line item is not known, and they are never one.
        if !sale.isOneOfSeveral {
            row.webOrderLineItemID = fields.word("webOrderLineItemId").map { WebOrderLineItemID($0) }
        }
        (row.quantity, row.expiresAt) = (quantity ?? 1, expiresAt)
        (row.cancelledAt, row.cancellationReason) = (cancelledAt, returned.reason)
        row.isUpgraded = fields.flag("isUpgraded") ?? false
        row.originalPurchasedAt = fields.instant("originalPurchaseDate")
        (row.isTrial, row.isIntro) = (offer.isTrial, offer.isIntro)
        (row.promotionalOfferID, row.offerCodeRefName) = (offer.promotionalOfferID, offer.offerCodeRefName)
        row.groupID = fields.word("subscriptionGroupIdentifier").map { SubscriptionGroupID($0) }
        row.ownership = fields.word("inAppOwnershipType").map(Ownership.init(raw:))
        row.appAccountToken = fields.word("appAccountToken")
        row.price = Self.price(fields, quantity: quantity)
        row.revocationPercentage = returned.percentage
        row.sale = sale.ifStated
        self.row = row
    }

    private static func needsExpiry(_ fields: JSONObject) -> Bool { fields.text("type") == autoRenewable }

    /// Returns the claims that the row of a transaction needs and that are absent.
    static func missingClaims(_ fields: JSONObject) -> [String] {
        let needed = ["productId", "purchaseDate"] + (needsExpiry(fields) ? ["expiresDate"] : [])
        return fields.states("transactionId") ? needed.filter { !fields.states($0) } : []
    }

    /// The highest price that is read, in thousandths of the currency's unit. Sums of many of them stay countable.
    static let priceMax: Int64 = 1_000_000_000_000

    /// Returns how many were bought, 1 where that is not stated; nil where it cannot be read.
    static func quantity(_ fields: JSONObject) -> Int? {
        guard fields.states("quantity") else { return 1 }
        return fields.integer("quantity").flatMap { (1...1_000_000).contains($0) ? Int($0) : nil }
    }

    /// Returns the price; nil where none is stated, and without an amount where what was paid is not known.
    private static func price(_ fields: JSONObject, quantity: Int?) -> Price? {
        guard fields.states("price") || fields.states("multiSeatInfo") || quantity == nil else { return nil }
        guard let currency = fields.text("currency"), currency.isCurrency else {
            return Price(milliunits: nil, currency: "")
        }
        return Price(milliunits: amount(fields, quantity: quantity), currency: currency.uppercased())
    }

    /// Returns the price of the whole quantity in thousandths; nil where there is none, where it is negative or absurd, or
    /// where the tiers of a group do not add up. The price of a group's text is the average of a seat.
    static func amount(_ fields: JSONObject, quantity: Int?) -> Int64? {
        guard let quantity else { return nil }
        guard fields.states("multiSeatInfo") else {
            return fields.integer("price").flatMap { (0...priceMax).contains($0) ? $0 : nil }
        }
        guard let seats = fields.object("multiSeatInfo") else { return nil }
        var (count, sum): (Int64, Int64) = (0, 0)
        for tier in seats.objects("priceTiers") {
            guard let price = tier.integer("price"), let seats = tier.integer("quantity"),
                (0...priceMax).contains(price), (0...1_000_000).contains(seats)
            else { return nil }
            (count, sum) = (count + seats, sum + price * seats)
            guard count <= quantity, sum <= priceMax else { return nil }
        }
        return count == quantity ? sum : nil
    }
}

/// What a signed transaction states of its revocation, of periods and purchases alike: docs/commitments.md has the table.
private struct Returned {
    /// `revocationType`, raw; or ours where amounts of items stand in its place.
    let type: String?
    /// The share of the price that is known to be given back; nil where it is all of it by assumption, or not known.
    let percentage: Int?
    /// Why it was taken back. A one-time purchase has no ``Sale``: where the kind of its revocation leaves the amount
    /// unknown, the kind is the reason, and no amount follows from it.
    let reason: String?

    init(_ fields: JSONObject, isPurchase: Bool) {
        let (type, share) = Self.kind(fields)
        let reason = fields.word("revocationReason")
        let isRead = type == nil || type == "REFUND_FULL" || type == "REFUND_PRORATED" && share != nil
        let isKnown = [nil, "0", "1"].contains(reason) || fields.flag("isUpgraded") == true
        let isPaid = fields.word("inAppOwnershipType").map { Ownership(raw: $0).isPayer } ?? true
        self.type = type
        percentage = isRead && isKnown ? share : nil
        self.reason = isPurchase && isPaid && !isRead ? type : reason
    }

    /// Returns the kind and the share that stands beside it. A full refund has no percentage (Apple: "revocationType"), and
    /// Advanced Commerce has amounts of items instead of both.
    private static func kind(_ fields: JSONObject) -> (type: String?, share: Int?) {
        let type = fields.word("revocationType")
        if type == "REFUND_FULL" { return (type, 100_000) }
        if type == nil, let commerce = fields.object("advancedCommerceInfo"), fields.instant("revocationDate") != nil {
            let amounts = commerce.objects("items").flatMap { $0.objects("refunds") }.map { $0.integer("refundAmount") }
            guard let price = fields.integer("price"), (1...SignedTransaction.priceMax).contains(price),
                !amounts.isEmpty, amounts.allSatisfy({ $0.map { $0 >= 0 } ?? false })
            else { return ("ADVANCED_COMMERCE", nil) }
            let sum = amounts.reduce(Int64(0)) { $0 + min($1 ?? 0, price) }
            return ("REFUND_PRORATED", Int(min(sum, price) * 100_000 / price))
        }
        return (type, fields.integer("revocationPercentage").flatMap { (0...100_000).contains($0) ? Int($0) : nil })
    }
}

/// The offer that a signed text names: of a transaction, or of the next renewal.
private struct SignedOffer {
    /// Whether it is a free trial. Older texts have no discount type: then a price of zero shows it.
    let isTrial: Bool
    let isIntro: Bool
    /// The identifier of a promotional offer, or of an offer to win a customer back.
    let promotionalOfferID: String?
    let offerCodeRefName: String?

    init(_ fields: JSONObject, isFree: Bool = false) {
        let (type, identifier) = (fields.text("offerType"), fields.word("offerIdentifier"))
        isTrial = type == "1" && (fields.text("offerDiscountType").map { $0 == "FREE_TRIAL" } ?? isFree)
        isIntro = type == "1" && !isTrial
        promotionalOfferID = type == "2" || type == "4" ? identifier : nil
        offerCodeRefName = type == "3" ? identifier : nil
    }
}

extension Sale {
    fileprivate init(_ fields: JSONObject, quantity: Int?, paidUntil: Instant?, revocationType: String?) {
        var seats: Seats?
        if let info = fields.object("multiSeatInfo"), let quantity {
            let revoked = info.integer("revokedSeatQuantity") ?? 0
            seats = Seats(count: quantity, revoked: (0...Int64(quantity)).contains(revoked) ? Int(revoked) : 0)
        }
        self.init(
            plan: fields.word("billingPlanType"), payment: Payment(fields, paidUntil: paidUntil), seats: seats,
            isOneOfSeveral: fields.text("additionalTransactionReason") != nil, revocationType: revocationType)
    }
}

extension Sale.Payment {
    /// Reads the payment of a term; nil where there is none, or where number, total and end contradict each other.
    fileprivate init?(_ fields: JSONObject, paidUntil: Instant?) {
        guard let term = fields.object("commitmentInfo"), let number = term.integer("billingPeriodNumber"),
            let total = term.integer("totalBillingPeriods"), let ends = term.instant("commitmentExpiresDate"),
            (1...1_000).contains(total), (1...total).contains(number), ends >= paidUntil ?? ends
        else { return nil }
        self.init(
            number: Int(number), total: Int(total), termEndsAt: ends,
            termPrice: term.integer("commitmentPrice").flatMap {
                (0...SignedTransaction.priceMax).contains($0) ? $0 : nil
            })
    }
}

/// What signed renewal information states (Apple: "JWSRenewalInfoDecodedPayload"). Unknown words stay raw.
package struct SignedRenewal: Sendable, Hashable {
    /// The row that the text states by itself; ``row(status:beside:)`` is what it means beside a status and a transaction.
    package let row: RenewalRow
    /// `environment`, raw.
    package let environment: String?
    /// `appAccountToken`.
    package let appAccountToken: String?
    private let plan: String?

    /// Reads a payload that was verified when it came, at `path`; nil without its subscription, product or instant.
    package init?(payload: [UInt8], path: String = "") {
        guard let fields = JSONObject(payload), let original = fields.word("originalTransactionId"),
            let product = fields.word("productId") ?? fields.word("autoRenewProductId"),
            let signedAt = fields.instant("signedDate")
        else { return nil }
        environment = fields.text("environment")
        appAccountToken = fields.word("appAccountToken")
        plan = fields.text("renewalBillingPlanType")
        let offer = SignedOffer(fields)
        var renewal = Renewal(productID: ProductID(product))
        renewal.renewsToProductID = fields.word("autoRenewProductId").map { ProductID($0) }
        renewal.willRenew = fields.flag("autoRenewStatus")
        renewal.expirationIntent = fields.word("expirationIntent")
        renewal.inBillingRetry = fields.flag("isInBillingRetryPeriod")
        renewal.graceExpiresAt = fields.instant("gracePeriodExpiresDate")
        renewal.priceIncreaseStatus = fields.word("priceIncreaseStatus")
        (renewal.promotionalOfferID, renewal.offerCodeRefName) = (offer.promotionalOfferID, offer.offerCodeRefName)
        renewal.term = fields.object("commitmentInfo").map(TermWill.init)
        row = RenewalRow(
            path: path, asOf: signedAt, originalTransactionID: OriginalTransactionID(original), renewal: renewal)
    }

    /// Returns the row beside the status and the transaction that Apple states with it. A monthly plan has no grace.
    package func row(status: AppleStatus?, beside transaction: SignedTransaction?) -> RenewalRow {
        var row = row
        let isMonthly = transaction?.row.sale?.isMonthly ?? false
        row.renewal.isInGraceByStatus = status.flatMap { status in
            guard status == .gracePeriod else { return false }
            // A date that is over says nothing of how long Apple's word holds.
            let hasDate = row.renewal.graceExpiresAt.map { $0 > row.asOf } ?? false
            return hasDate || isMonthly ? nil : true
        }
        // A text that knows no plans denies nothing.
        if row.renewal.term == nil, plan != nil || isMonthly {
            row.renewal.term = TermWill(plan: plan == Sale.monthly && !isMonthly ? Sale.monthly : nil)
        }
        return row
    }
}

extension TermWill {
    fileprivate init(_ term: JSONObject) {
        self.init(
            renews: term.flag("commitmentAutoRenewStatus"),
            productID: term.word("commitmentAutoRenewProductId").map { ProductID($0) },
            plan: term.word("commitmentRenewalBillingPlanType"))
    }
}

extension Evidence {
    /// Reads what a notification states; nil if it holds neither a transaction nor renewal information. It is no answer: it
    /// only adds details to answers. A transaction whose row is ignored leaves it incomplete.
    package init?(in notification: SignedNotification, environment: StoreEnvironment) {
        let transaction = notification.transaction?.row
        let renewal = notification.renewal?.row(
            status: notification.status.flatMap(AppleStatus.init(rawValue:)), beside: notification.transaction)
        let isRead = notification.subject == nil || transaction != nil
        let clocks = [transaction?.asOf, renewal?.asOf, isRead ? nil : notification.signedAt]
        guard let asOf = clocks.compactMap(\.self).min() else { return nil }
        self.init(
            environment: environment, bundleID: notification.bundleID.map { BundleID($0.storable) }, asOf: asOf,
            transactions: [transaction].compactMap(\.self), renewals: [renewal].compactMap(\.self), isComplete: isRead)
    }
}

extension JSONObject {
    /// Returns a text in a form that a column can store.
    func word(_ name: String) -> String? { text(name)?.storable }

    /// Returns a whole number; nil if absent, or for a fraction.
    func integer(_ name: String) -> Int64? { text(name).flatMap(LenientNumber.integer) }

    /// Returns an instant; nil if absent, or if nothing can have happened then.
    func instant(_ name: String) -> Instant? { text(name).flatMap(LenientInstant.instant) }
}

extension LenientInstant {
    /// Returns the instant in a number of milliseconds. A fraction is rounded, because Xcode writes instants with fractions.
    static func instant(in text: String) -> Instant? {
        var milliseconds = LenientNumber.integer(text)
        if milliseconds == nil, let number = Double(text), number.magnitude < 9_007_199_254_740_992 {
            milliseconds = Int64(number.rounded())
        }
        return milliseconds.flatMap(believable).map(Instant.init(milliseconds:))
    }
}
