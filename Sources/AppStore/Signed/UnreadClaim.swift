import JSON
import Subscriptions

/// A claim of a signed text that this version does not know, a word in one that it does not know, or a value that is not of
/// the form that it reads. Such claims stay in the stored texts; dates alone decide access.
package struct UnreadClaim: Sendable, Hashable {
    /// The kind of signed text.
    package enum Kind: String, Sendable, CaseIterable {
        case transaction, renewal, notification

        /// Determines what a payload is by its claims; nil for another kind.
        package init?(of payload: [UInt8]) {
            guard let fields = JSONObject(payload) else { return nil }
            if fields.states("notificationType") {
                self = .notification
            } else if fields.states("transactionId") {
                self = .transaction
            } else if fields.states("autoRenewStatus") || fields.states("autoRenewProductId") {
                self = .renewal
            } else {
                return nil
            }
        }
    }

    /// The most that are named of one text.
    static let textMax = 20
    /// The longest name, in characters.
    static let nameMax = 100
    /// The longest word that is repeated, in characters.
    private static let wordMax = 40

    /// The kind of text and the place, such as `transaction.multiSeatInfo.newClaim`; a new word follows an equals sign.
    package let name: String
    /// Whether the claim is known and its value cannot be read.
    package let isUnreadable: Bool

    init(_ path: String, word: String? = nil, isUnreadable: Bool = false) {
        name = String((path + (word.map { "=" + String($0.prefix(Self.wordMax)) } ?? "")).prefix(Self.nameMax))
        self.isUnreadable = isUnreadable
    }

    /// Returns what is not read of a verified payload, each name once, in the order of the text.
    package static func all(in kind: Kind, payload: [UInt8]) -> [UnreadClaim] {
        guard let document = JSONDocument(object: payload) else { return [] }
        var found: [UnreadClaim] = []
        document.compare(JSONDocument.root, with: KnownClaims.of(kind), at: kind.rawValue, &found)
        if kind == .transaction { found += contradictions(in: payload, besides: found) }
        var seen: Set<String> = []
        return Array(found.filter { seen.insert($0.name).inserted }.prefix(textMax))
    }

    /// Returns claims of a transaction that contradict each other, and what is not read because of them; and those without which
    /// it is ignored. Where a claim within is named, what holds it is not.
    private static func contradictions(in payload: [UInt8], besides found: [UnreadClaim]) -> [UnreadClaim] {
        guard let fields = JSONObject(payload) else { return [] }
        let read = SignedTransaction(payload: payload)
        var wrong = SignedTransaction.missingClaims(fields)
        func isNamed(_ name: String) -> Bool {
            wrong.contains { $0.hasPrefix(name) }
                || found.contains { $0.isUnreadable && $0.name.hasPrefix("transaction.\(name)") }
        }
        if let term = fields.object("commitmentInfo") {
            if let number = term.integer("billingPeriodNumber"), let total = term.integer("totalBillingPeriods"),
                number > total
            {
                wrong.append("commitmentInfo.billingPeriodNumber")
            }
            if let ends = term.instant("commitmentExpiresDate"), let paid = fields.instant("expiresDate"), ends < paid {
                wrong.append("commitmentInfo.commitmentExpiresDate")
            }
            if let read, read.row.sale?.payment == nil, !isNamed("commitmentInfo") { wrong.append("commitmentInfo") }
        }
        if let revoked = fields.object("multiSeatInfo")?.integer("revokedSeatQuantity"),
            let quantity = fields.integer("quantity"), revoked > quantity
        {
            wrong.append("multiSeatInfo.revokedSeatQuantity")
        }
        if let read, let price = read.row.price, price.milliunits == nil {
            // A seat of a group need not have a price.
            if fields.object("multiSeatInfo") != nil, read.row.ownership?.isPayer ?? true,
                !isNamed("multiSeatInfo.priceTiers"),
                SignedTransaction.amount(fields, quantity: SignedTransaction.quantity(fields)) == nil
            {
                wrong.append("multiSeatInfo.priceTiers")
            }
            if fields.states("price"), fields.text("currency") == nil, !isNamed("currency") { wrong.append("currency") }
        }
        return wrong.map { UnreadClaim("transaction.\($0)", isUnreadable: true) }
    }
}

extension JSONDocument {
    /// Appends what differs between an object and the forms of its claims.
    fileprivate func compare(
        _ object: Int, with forms: [String: KnownClaims.Form], at path: String, _ found: inout [UnreadClaim]
    ) {
        for key in keys(object) where !isAbsent(key + 1) {
            let name = unescaped(nodes[key])
            if let form = forms[name] {
                compare(key + 1, with: form, at: "\(path).\(name)", &found)
            } else {
                found.append(UnreadClaim("\(path).\(name)"))
            }
            // Another text than Apple's could have any number of members.
            guard found.count < UnreadClaim.textMax else { return }
        }
    }

    private func compare(
        _ value: Int, with form: KnownClaims.Form, at path: String, _ found: inout [UnreadClaim]
    ) {
        func require(_ isRead: Bool) {
            if !isRead { found.append(UnreadClaim(path, isUnreadable: true)) }
        }
        switch form {
        case .any: return
        case .text: require(scalar(value) != nil)
        case .code: require(scalar(value)?.isCurrency ?? false)
        case .flag: require(["true", "false", "0", "1"].contains(scalar(value)))
        case .instant: require(scalar(value).flatMap(LenientInstant.instant) != nil)
        case .number(let range):
            require(scalar(value).flatMap(LenientNumber.integer).map { range.contains($0) } ?? false)
        case .word(let words):
            guard let word = scalar(value) else { return require(false) }
            if !words.contains(word) { found.append(UnreadClaim(path, word: word)) }
        case .object(let forms):
            guard nodes[value].isObject else { return require(false) }
            compare(value, with: forms, at: path, &found)
        case .list(let form):
            guard nodes[value].isArray else { return require(false) }
            for element in elements(value).prefix(UnreadClaim.textMax) {
                compare(element, with: form, at: path + "[]", &found)
            }
        }
    }
}

/// The claims of Apple's signed texts that this version knows, up to App Store Server API 1.23: those that it reads, and
/// those that it leaves in the stored texts. What is not here, or is of another form, is counted as unread.
enum KnownClaims {
    indirect enum Form: Sendable {
        /// Its value is not looked into.
        case any
        case text
        /// Three letters, such as a currency's or a storefront's.
        case code
        case flag
        /// Milliseconds since 1970.
        case instant
        case number(ClosedRange<Int64>)
        /// One of these words, or of these numbers.
        case word(Set<String>)
        case object([String: Form])
        case list(Form)
    }

    static func of(_ kind: UnreadClaim.Kind) -> [String: Form] {
        switch kind {
        case .transaction: transaction
        case .renewal: renewal
        case .notification: notification
        }
    }

    private static let amount = Form.number(0...SignedTransaction.priceMax)
    private static let count = Form.number(1...1_000_000)
    private static let environments = Form.word(["Production", "Sandbox", "Xcode", "LocalTesting"])
    private static let plans = Form.word(["BILLED_UPFRONT", "MONTHLY"])
    private static let tiers = Form.list(.object(["price": amount, "quantity": count]))

    private static let shared: [String: Form] = [
        "advancedCommerceInfo": .any, "appAccountToken": .text, "appTransactionId": .text, "currency": .code,
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
        "revocationType": .word(["REFUND_FULL", "REFUND_PRORATED", "FAMILY_REVOKE"]), "storefront": .code,
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
