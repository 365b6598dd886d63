/// A notification of version 2 (Apple: "responseBodyV2DecodedPayload"), with the texts within it.
package struct SignedNotification: Sendable, Hashable {
    /// When it was signed, in milliseconds since 1970.
    package let signedAt: Int64
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
    /// `consumptionRequestReason`, raw.
    package let consumptionRequestReason: String?
    /// The transaction within it.
    package let transaction: SignedTransaction?
    /// The renewal information within it.
    package let renewal: SignedRenewal?

    /// Reads payloads that were verified when they came; nil if the outer one is no notification, or an inner one cannot
    /// be read.
    package init?(payload: [UInt8], transaction: [UInt8]?, renewal: [UInt8]?) {
        guard let fields = PayloadFields(payload), let kind = fields.text("notificationType"),
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
        consumptionRequestReason = data?.text("consumptionRequestReason")
        self.transaction = transaction.flatMap { SignedTransaction(payload: $0) }
        self.renewal = renewal.flatMap { SignedRenewal(payload: $0) }
        guard (transaction == nil) == (self.transaction == nil), (renewal == nil) == (self.renewal == nil) else {
            return nil
        }
    }
}

extension SignedNotification {
    /// Reads the claims that were kept of a notification: an object each for `notification`, `transaction` and `renewal`.
    package init?(claims: String) {
        guard let document = try? JSONReader.read(Array(claims.utf8)), document.nodes[JSONDocument.root].isObject else {
            return nil
        }
        let members = document.members(JSONDocument.root)
        func part(_ name: String) -> [UInt8]? {
            members[name].flatMap { index in
                document.nodes[index].isObject ? Array(document.bytes[document.nodes[index].content]) : nil
            }
        }
        guard let payload = part("notification") else { return nil }
        self.init(payload: payload, transaction: part("transaction"), renewal: part("renewal"))
    }
}

extension SignedText {
    /// The signed texts that a notification holds, in compact form, not verified.
    package var innerTexts: (transaction: String?, renewal: String?) {
        let data = PayloadFields(payload)?.object("data")
        return (data?.text("signedTransactionInfo"), data?.text("signedRenewalInfo"))
    }
}

/// What a signed transaction states (Apple: "JWSTransactionDecodedPayload"). Unknown words stay raw.
///
/// Instants are milliseconds since 1970.
package struct SignedTransaction: Sendable, Hashable {
    /// When it was signed: the instant that it speaks for.
    package let signedAt: Int64
    /// `transactionId`.
    package let transactionID: String
    /// `originalTransactionId`; the transaction id if missing.
    package let originalTransactionID: String
    /// `webOrderLineItemId`; absent on one-time purchases.
    package let webOrderLineItemID: String?
    /// `bundleId`.
    package let bundleID: String?
    /// `environment`, raw.
    package let environment: String?
    /// `productId`.
    package let productID: String
    /// `type`, raw, such as Consumable.
    package let kind: String?
    /// `subscriptionGroupIdentifier`.
    package let subscriptionGroupIdentifier: String?
    /// `quantity`; 1 if missing or absurd.
    package let quantity: Int
    /// `purchaseDate`.
    package let purchasedAt: Int64
    /// `originalPurchaseDate`.
    package let originalPurchasedAt: Int64?
    /// `expiresDate`; a transaction without it is a one-time purchase.
    package let expiresAt: Int64?
    /// `revocationDate`.
    package let revokedAt: Int64?
    /// `revocationReason`, raw.
    package let revocationReason: String?
    /// `revocationType`, raw; a word of our own where an Advanced Commerce purchase was revoked without an amount.
    package let revocationType: String?
    /// `revocationPercentage`, in thousandths of a percent; everything if `revocationType` is `REFUND_FULL`.
    package let revocationPercentage: Int?
    /// `isUpgraded`.
    package let isUpgraded: Bool
    /// `offerType`, raw: 1 introductory, 2 promotional, 3 offer code, 4 win-back.
    package let offerType: String?
    /// `offerIdentifier`.
    package let offerIdentifier: String?
    /// `offerDiscountType`, raw.
    package let offerDiscountType: String?
    /// `inAppOwnershipType`, raw.
    package let ownershipType: String?
    /// `appAccountToken`.
    package let appAccountToken: String?
    /// `price` of the whole quantity, in thousandths of the currency's unit; of a group what its tiers add up to.
    package let price: Int64?
    /// `currency`.
    package let currency: String?
    /// `billingPlanType`, raw; absent where all is paid at once.
    package let billingPlanType: String?
    /// `commitmentInfo`: which payment of a term it is; nil where it contradicts itself.
    package let payment: Payment?
    /// `multiSeatInfo`: how many seats of a group Apple refunded; nil without a group.
    package let revokedSeats: Int?
    /// Whether it names an `additionalTransactionReason`: other transactions are of the same period.
    package let isOneOfSeveral: Bool

    /// One payment of a term of payments.
    package struct Payment: Sendable, Hashable {
        /// `billingPeriodNumber`, from 1.
        package let number: Int
        /// `totalBillingPeriods`.
        package let total: Int
        /// `commitmentExpiresDate`, the end of the term.
        package let termEndsAt: Int64
        /// `commitmentPrice` of the whole term.
        package let termPrice: Int64?
    }

    /// Reads the payload of a verified text; nil if it lacks a product, a transaction, a purchase instant or its own.
    package init?(_ text: SignedText) {
        self.init(payload: text.payload, signedAt: text.signedAt)
    }

    /// Reads a payload that was verified when it came.
    package init?(payload: [UInt8], signedAt: Int64? = nil) {
        guard let fields = PayloadFields(payload), let transactionID = fields.text("transactionId"),
            let productID = fields.text("productId"), let purchasedAt = fields.instant("purchaseDate"),
            let signedAt = signedAt ?? fields.instant("signedDate")
        else { return nil }
        self.signedAt = signedAt
        self.transactionID = transactionID
        self.productID = productID
        self.purchasedAt = purchasedAt
        originalTransactionID = fields.text("originalTransactionId") ?? transactionID
        webOrderLineItemID = fields.text("webOrderLineItemId")
        bundleID = fields.text("bundleId")
        environment = fields.text("environment")
        kind = fields.text("type")
        subscriptionGroupIdentifier = fields.text("subscriptionGroupIdentifier")
        quantity = fields.integer("quantity").flatMap { (1...1_000_000).contains($0) ? Int($0) : nil } ?? 1
        originalPurchasedAt = fields.instant("originalPurchaseDate")
        expiresAt = fields.instant("expiresDate")
        revokedAt = fields.instant("revocationDate")
        revocationReason = fields.text("revocationReason")
        let returned = Self.returned(fields)
        (revocationType, revocationPercentage) = (returned.type, returned.percentage)
        isUpgraded = fields.flag("isUpgraded") ?? false
        offerType = fields.text("offerType")
        offerIdentifier = fields.text("offerIdentifier")
        offerDiscountType = fields.text("offerDiscountType")
        ownershipType = fields.text("inAppOwnershipType")
        appAccountToken = fields.text("appAccountToken")
        price = Self.price(fields, quantity: quantity)
        currency = fields.text("currency")
        billingPlanType = fields.text("billingPlanType")
        payment = Payment(fields, paidUntil: expiresAt)
        let seats = fields.object("multiSeatInfo")
        let revoked = seats?.integer("revokedSeatQuantity") ?? 0
        revokedSeats = seats == nil ? nil : (0...Int64(quantity)).contains(revoked) ? Int(revoked) : 0
        isOneOfSeveral = fields.text("additionalTransactionReason") != nil
    }

    /// Returns what was taken back, and which share of the price. A full refund has no percentage (Apple:
    /// "revocationType"), and Advanced Commerce has amounts of items instead of both.
    private static func returned(_ fields: PayloadFields) -> (type: String?, percentage: Int?) {
        let type = fields.text("revocationType")
        if type == "REFUND_FULL" { return (type, 100_000) }
        if type == nil, let commerce = fields.object("advancedCommerceInfo"), fields.instant("revocationDate") != nil {
            let amounts = commerce.objects("items").flatMap { $0.objects("refunds") }.map { $0.integer("refundAmount") }
            guard let price = fields.integer("price"), (1...1_000_000_000_000).contains(price), !amounts.isEmpty else {
                return ("ADVANCED_COMMERCE", nil)
            }
            let sum = amounts.reduce(Int64(0)) { $0 + min(max($1 ?? 0, 0), price) }
            return ("REFUND_PRORATED", Int(min(sum, price) * 100_000 / price))
        }
        return (type, fields.integer("revocationPercentage").flatMap { (0...100_000).contains($0) ? Int($0) : nil })
    }

    /// Returns the price of the whole quantity; nil where there is none, or where the tiers of a group do not add up. The
    /// price of a group's text is the average of a seat.
    private static func price(_ fields: PayloadFields, quantity: Int) -> Int64? {
        guard let seats = fields.object("multiSeatInfo") else {
            return fields.integer("price").flatMap { $0 >= 0 ? $0 : nil }
        }
        let tiers = seats.objects("priceTiers").map { ($0.integer("price"), $0.integer("quantity")) }
        var (count, sum): (Int64, Int64) = (0, 0)
        for (price, seats) in tiers {
            guard let price, let seats, (0...1_000_000_000_000).contains(price), (0...1_000_000).contains(seats) else {
                return nil
            }
            (count, sum) = (count + seats, sum + price * seats)
            guard count <= quantity, sum >= 0 else { return nil }
        }
        return count == quantity ? sum : nil
    }

    /// Whether it is a free trial. Older texts have no discount type: then a price of zero shows it.
    package var isTrial: Bool {
        guard offerType == "1" else { return false }
        return offerDiscountType.map { $0 == "FREE_TRIAL" } ?? (price == 0)
    }

    /// Whether it has an introductory price.
    package var isIntro: Bool { offerType == "1" && !isTrial }

    /// The identifier of a promotional offer, or of an offer to win a customer back.
    package var promotionalOfferID: String? { offerType == "2" || offerType == "4" ? offerIdentifier : nil }

    /// The reference name of an offer code.
    package var offerCodeRefName: String? { offerType == "3" ? offerIdentifier : nil }
}

extension SignedTransaction.Payment {
    /// Reads the payment of a term; nil where there is none, or where number, total and end contradict each other.
    fileprivate init?(_ fields: PayloadFields, paidUntil: Int64?) {
        guard let term = fields.object("commitmentInfo"), let number = term.integer("billingPeriodNumber"),
            let total = term.integer("totalBillingPeriods"), let ends = term.instant("commitmentExpiresDate"),
            (1...1_000).contains(total), (1...total).contains(number), ends >= paidUntil ?? ends
        else { return nil }
        self.number = Int(number)
        self.total = Int(total)
        termEndsAt = ends
        termPrice = term.integer("commitmentPrice").flatMap { $0 >= 0 ? $0 : nil }
    }
}

/// What signed renewal information states (Apple: "JWSRenewalInfoDecodedPayload"). Unknown words stay raw.
///
/// Instants are milliseconds since 1970.
package struct SignedRenewal: Sendable, Hashable {
    /// When it was signed: the instant that it speaks for.
    package let signedAt: Int64
    /// `originalTransactionId`.
    package let originalTransactionID: String
    /// `environment`, raw.
    package let environment: String?
    /// `productId`: the current product.
    package let productID: String
    /// `appAccountToken`.
    package let appAccountToken: String?
    /// `autoRenewProductId`.
    package let autoRenewProductID: String?
    /// `autoRenewStatus`.
    package let autoRenewStatus: Bool?
    /// `expirationIntent`, raw.
    package let expirationIntent: String?
    /// `isInBillingRetryPeriod`.
    package let isInBillingRetry: Bool?
    /// `gracePeriodExpiresDate`.
    package let graceExpiresAt: Int64?
    /// `priceIncreaseStatus`, raw.
    package let priceIncreaseStatus: String?
    /// The identifier of the promotional offer of the next period.
    package let promotionalOfferID: String?
    /// The reference name of the offer code of the next period.
    package let offerCodeRefName: String?
    /// `renewalBillingPlanType`, raw.
    package let renewalPlan: String?
    /// `commitmentInfo`: what the customer wants after the term of payments that runs; nil outside of a term.
    package let term: Term?
    /// `renewalDate`: when the newest period ends.
    package let renewalAt: Int64?

    /// Reads the payload of a verified text; nil if it lacks its subscription, product or instant.
    package init?(_ text: SignedText) {
        self.init(payload: text.payload, signedAt: text.signedAt)
    }

    /// Reads a payload that was verified when it came.
    package init?(payload: [UInt8], signedAt: Int64? = nil) {
        guard let fields = PayloadFields(payload), let originalTransactionID = fields.text("originalTransactionId"),
            let productID = fields.text("productId") ?? fields.text("autoRenewProductId"),
            let signedAt = signedAt ?? fields.instant("signedDate")
        else { return nil }
        self.signedAt = signedAt
        self.originalTransactionID = originalTransactionID
        self.productID = productID
        environment = fields.text("environment")
        appAccountToken = fields.text("appAccountToken")
        autoRenewProductID = fields.text("autoRenewProductId")
        autoRenewStatus = fields.flag("autoRenewStatus")
        expirationIntent = fields.text("expirationIntent")
        isInBillingRetry = fields.flag("isInBillingRetryPeriod")
        graceExpiresAt = fields.instant("gracePeriodExpiresDate")
        priceIncreaseStatus = fields.text("priceIncreaseStatus")
        let (offer, type) = (fields.text("offerIdentifier"), fields.text("offerType"))
        promotionalOfferID = type == "2" || type == "4" ? offer : nil
        offerCodeRefName = type == "3" ? offer : nil
        renewalAt = fields.instant("renewalDate")
        renewalPlan = fields.text("renewalBillingPlanType")
        term = fields.object("commitmentInfo").map { term in
            Term(
                renews: term.flag("commitmentAutoRenewStatus"), productID: term.text("commitmentAutoRenewProductId"),
                plan: term.text("commitmentRenewalBillingPlanType"))
        }
    }

    /// What the customer wants after a term of payments.
    package struct Term: Sendable, Hashable {
        /// `commitmentAutoRenewStatus`.
        package let renews: Bool?
        /// `commitmentAutoRenewProductId`.
        package let productID: String?
        /// `commitmentRenewalBillingPlanType`, raw.
        package let plan: String?
    }
}

/// The members of one object of a signed payload, read leniently: a value of another type counts as absent.
struct PayloadFields {
    private let document: JSONDocument
    private let members: [String: Int]

    /// Reads the object that a payload is; nil for anything else.
    init?(_ payload: [UInt8]) {
        guard let document = try? JSONReader.read(payload) else { return nil }
        self.init(document, at: JSONDocument.root)
    }

    private init?(_ document: JSONDocument, at index: Int) {
        guard document.nodes[index].isObject else { return nil }
        self.document = document
        members = document.members(index)
    }

    /// Returns the object in a member; nil if there is none.
    func object(_ name: String) -> PayloadFields? { members[name].flatMap { PayloadFields(document, at: $0) } }

    /// Returns the objects of a list in a member; empty if there is none.
    func objects(_ name: String) -> [PayloadFields] {
        (members[name].map(document.elements) ?? []).compactMap { PayloadFields(document, at: $0) }
    }

    /// Returns a text; nil if absent, null or empty.
    func text(_ name: String) -> String? { members[name].flatMap(document.scalar) }

    /// Returns a whole number; a fraction is rounded, because Xcode writes instants with fractions.
    func integer(_ name: String) -> Int64? { text(name).flatMap(Self.integer(in:)) }

    /// Returns the whole number in a text; nil for anything else.
    static func integer(in text: String) -> Int64? {
        if let exact = LenientNumber.integer(text) { return exact }
        guard let number = Double(text), number.magnitude < 9_007_199_254_740_992 else { return nil }
        return Int64(number.rounded())
    }

    /// Returns an instant in milliseconds since 1970; nil if absent, or if nothing can have happened then.
    func instant(_ name: String) -> Int64? { integer(name).flatMap(LenientInstant.believable) }

    /// Returns a boolean; 0 and 1 count too.
    func flag(_ name: String) -> Bool? {
        switch text(name) {
        case "true", "1": true
        case "false", "0": false
        default: nil
        }
    }
}
