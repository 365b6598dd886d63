import Synchronization

/// A verifyReceipt answer, decoded leniently: Apple's statements as typed values, without conclusions.
///
/// Accepts unified answers (iOS 7 and later) and legacy ones; strings, numbers or booleans; an array or a single
/// object. Instants are milliseconds since 1970. Apple: "responseBody", App Store Receipts.
package struct VerifyReceiptResponse: Sendable, Hashable {
    /// Apple's status code; nil if there is none, and then the answer says nothing.
    package let status: Int?
    /// `Production` or `Sandbox` as Apple wrote it; old answers omit it.
    package let environment: String?
    /// Whether another try may help; Apple documents it for 21100 to 21199.
    package let isRetryable: Bool?
    /// An undocumented text beside 21002.
    package let exception: String?
    /// The app of the receipt: `bundle_id`, in legacy answers `bid`.
    package let bundleID: String?
    /// Whether the answer is about an iOS 6 style transaction receipt.
    package let isLegacy: Bool
    /// The creation of the receipt: the instant for which `inApp` speaks.
    package let receiptCreatedAt: Int64?
    /// Apple's clock at this call: the instant for which everything else speaks.
    package let requestedAt: Int64?
    /// The rows of the device's receipt; in legacy answers the receipt itself.
    package let inApp: [TransactionFields]
    /// The rows of Apple's own knowledge, in the order received, which has no meaning.
    package let latestReceiptInfo: [TransactionFields]
    /// Apple's information about coming renewals.
    package let renewals: [RenewalFields]
    /// The newest receipt in Base64, suitable for the next request.
    package let latestReceipt: String?
    /// The paths of rows that could not be read, at most 1,000.
    package let unreadableRows: [String]

    /// Whether every row of Apple's own knowledge could be read, regardless of the device's receipt.
    package var isComplete: Bool {
        unreadableRows.allSatisfy { $0.hasPrefix(AnswerField.receipt.name) }
    }

    /// Decodes a body. Throws if it is not one complete JSON object; such a body says nothing about the receipt.
    package init(parsing body: [UInt8]) throws(AnswerUnreadable) {
        let text = try JSONReader.read(body)
        guard text.nodes[JSONDocument.root].isObject else { throw AnswerUnreadable("JSON that is not an object") }
        let top = LenientFields(text, at: JSONDocument.root)
        status = top.integer(.status).flatMap { Int(exactly: $0) }
        environment = top.text(.environment)
        isRetryable = top.flag(.isRetryable) ?? top.flag(.isRetryableUnderscored)
        exception = top.text(.exception)
        latestReceipt = top.text(.latestReceipt)

        let receipt = ReceiptPart(of: top, in: text)
        isLegacy = receipt.isLegacy
        bundleID = receipt.bundleID
        receiptCreatedAt = receipt.fields?.instant(.receiptCreation)
        requestedAt = receipt.fields?.instant(.request) ?? top.instant(.request)

        var reader = RowReader(text)
        inApp = try reader.transactions(receipt.rows, path: receipt.rowsPath)
        var latest = try reader.transactions(
            top.value(.latestReceiptInfo), path: AnswerField.latestReceiptInfo.name)
        latest += try reader.transactions(
            top.value(.latestExpiredReceiptInfo), path: AnswerField.latestExpiredReceiptInfo.name)
        latestReceiptInfo = latest
        // Apple's own knowledge identifies the subscription of an unnamed renewal better than the device's receipt.
        let rows = latest.isEmpty ? inApp : latest
        let pending = top.value(.pendingRenewalInfo)
        if pending.map(text.isAbsent) ?? true {
            renewals = reader.legacyRenewal(top, among: rows)
        } else {
            renewals = try reader.renewals(pending, path: AnswerField.pendingRenewalInfo.name, among: rows)
        }
        unreadableRows = reader.unreadable
    }
}

/// The `receipt` of an answer: app-level fields with rows in `in_app`, or in legacy answers a single row.
struct ReceiptPart {
    let fields: LenientFields?
    let isLegacy: Bool
    let bundleID: String?
    let rows: Int?
    let rowsPath: String

    init(of top: LenientFields, in text: JSONDocument) {
        let member = top.value(.receipt)
        let isWrapped = member.map { text.nodes[$0].isArray } ?? false
        let receipt = isWrapped ? member.flatMap { text.elements($0).first } : member
        let path = isWrapped ? "receipt[0]" : "receipt"
        let fields = receipt.map { LenientFields(text, at: $0) }
        let latest = [top.value(.latestReceiptInfo), top.value(.latestExpiredReceiptInfo)].compactMap(\.self)
            .filter { text.nodes[$0].isObject }
        let inApp = fields?.value(.inApp)
        let isRow = [AnswerField.productID, .transactionID, .originalTransactionID].contains {
            fields?.value($0) != nil
        }
        isLegacy = inApp == nil && (isRow || !latest.isEmpty)
        rows = isRow && inApp == nil ? receipt : inApp
        rowsPath = isRow && inApp == nil ? path : path + ".in_app"
        bundleID =
            fields.flatMap(Self.bundleID(in:))
            ?? latest.lazy.compactMap { Self.bundleID(in: LenientFields(text, at: $0)) }.first
            ?? Self.bundleID(in: top)
        self.fields = fields
    }

    private static func bundleID(in fields: LenientFields) -> String? { fields.text(.bundleID) ?? fields.text(.bid) }
}

/// A body that is decoded when it is first asked for. Most answers repeat the last one, which their bytes show.
final class UnreadBody: Sendable {
    private let body: [UInt8]
    private let decoded = Mutex<Result<VerifyReceiptResponse, AnswerUnreadable>?>(nil)

    init(_ body: [UInt8]) {
        self.body = body
    }

    /// The decoded body; nil if it is not a verifyReceipt answer.
    var response: VerifyReceiptResponse? { try? result.get() }

    /// The reason there is no response, in one sentence; nil if there is one.
    var failure: String? {
        switch result {
        case .success: nil
        case .failure(let error): "The store answered HTTP 200 with \(error.reason); ask again later."
        }
    }

    private var result: Result<VerifyReceiptResponse, AnswerUnreadable> {
        decoded.withLock { decoded in
            if let decoded { return decoded }
            let result = Result { () throws(AnswerUnreadable) in try VerifyReceiptResponse(parsing: body) }
            decoded = result
            return result
        }
    }
}

/// One row from Apple about a purchase or a period, unchanged and without conclusions.
///
/// Instants are milliseconds since 1970. Apple: "responseBody.Latest_receipt_info" and "responseBody.Receipt.In_app".
package struct TransactionFields: Sendable, Hashable {
    /// The place of the row: `latest_receipt_info[3]`, `receipt.in_app[0]`; in legacy answers `receipt`,
    /// `latest_receipt_info` or `latest_expired_receipt_info`.
    package let path: String
    /// The quantity bought; 1 if missing or absurd.
    package let quantity: Int
    /// The product bought.
    package let productID: String
    /// One delivery of the purchase; not stable. Apple never sends a row without it. Such a row gets a name made of its
    /// original transaction and purchase instant (`1000/1432400579000`), so that two periods never share one.
    package let transactionID: String
    /// The subscription or purchase of this row; the transaction id if missing.
    package let originalTransactionID: String
    /// The billing period; absent on one-time purchases and on some family-shared rows.
    package let webOrderLineItemID: String?
    /// The start of this period; may lie in the future. The original purchase date if missing.
    package let purchasedAt: Int64
    /// The start of the chain, or the moment of a restore.
    package let originalPurchasedAt: Int64?
    /// The end of the paid period, before any grace. A row without it is a one-time purchase.
    package let expiresAt: Int64?
    /// The notation of the expiry.
    package let expiryForm: DateForm?
    /// The instant at which Apple refunded, revoked or replaced it. A customer who turns renewal off does not set it.
    package let cancelledAt: Int64?
    /// The notation of the cancellation.
    package let cancellationForm: DateForm?
    /// `1`: a problem with the app; `0`: anything else; raw.
    package let cancellationReason: String?
    /// Whether the period is a free trial; nil if the row does not state it.
    package let isTrialPeriod: Bool?
    /// Whether the period has an introductory price; nil if the row does not state it.
    package let isInIntroOfferPeriod: Bool?
    /// Whether a higher level of service replaced it.
    package let isUpgraded: Bool
    /// The promotional offer redeemed.
    package let promotionalOfferID: String?
    /// The offer code's reference name.
    package let offerCodeRefName: String?
    /// The group of the product.
    package let subscriptionGroupIdentifier: String?
    /// `PURCHASED` or `FAMILY_SHARED`, raw.
    package let ownershipType: String?
    /// The token that the app passed at purchase, a UUID.
    package let appAccountToken: String?

    /// Returns the path of one field, for an explanation: `latest_receipt_info[3].expires_date_ms`.
    package func path(of field: String) -> String { path + "." + field }

    /// Reads a row; nil if it lacks a product, a transaction or a purchase instant, or contains an instant that cannot
    /// be read. Without its expiry a subscription would be a purchase and never end; without its cancellation a refund
    /// would be missed.
    init?(reading fields: LenientFields, path: String) {
        let (starts, ends) = (fields.instant(.purchase), fields.instant(.expires))
        let cancelled = fields.instant(.cancellation)
        guard starts != nil || !fields.mentions(.purchase), ends != nil || !fields.mentions(.expires),
            cancelled != nil || !fields.mentions(.cancellation), let productID = fields.text(.productID),
            let purchasedAt = starts ?? fields.instant(.originalPurchase)
        else { return nil }
        let transactionID = fields.identifier(.transactionID)
        guard let originalTransactionID = fields.identifier(.originalTransactionID) ?? transactionID else {
            return nil
        }
        self.path = path
        self.productID = productID
        self.purchasedAt = purchasedAt
        self.originalTransactionID = originalTransactionID
        self.transactionID = transactionID ?? "\(originalTransactionID)/\(purchasedAt)"
        quantity = fields.integer(.quantity).flatMap { (1...1_000_000).contains($0) ? Int($0) : nil } ?? 1
        webOrderLineItemID = fields.identifier(.webOrderLineItemID)
        originalPurchasedAt = fields.instant(.originalPurchase)
        expiresAt = ends
        expiryForm = fields.form(of: .expires)
        // Some sources write zero for no value: there were no refunds in 1970.
        cancelledAt = cancelled.flatMap { $0 == 0 ? nil : $0 }
        cancellationForm = cancelledAt == nil ? nil : fields.form(of: .cancellation)
        cancellationReason = fields.text(.cancellationReason)
        isTrialPeriod = fields.flag(.isTrialPeriod)
        isInIntroOfferPeriod = fields.flag(.isInIntroOfferPeriod)
        isUpgraded = fields.flag(.isUpgraded) ?? false
        promotionalOfferID = fields.text(.promotionalOfferID)
        offerCodeRefName = fields.text(.offerCodeRefName)
        subscriptionGroupIdentifier = fields.identifier(.subscriptionGroupIdentifier)
        ownershipType = fields.text(.ownershipType)
        appAccountToken = fields.text(.appAccountToken)
    }
}

/// Apple's information about the next renewal of one subscription, unchanged.
///
/// Instants are milliseconds since 1970. Apple: "responseBody.Pending_renewal_info".
package struct RenewalFields: Sendable, Hashable {
    /// The row's path, such as `pending_renewal_info[0]`; empty in legacy answers, whose renewal fields are at the top
    /// level.
    package let path: String
    /// The subscription. If an old answer omits it, it is the only subscription in the answer with this product.
    package let originalTransactionID: String
    /// The current product.
    package let productID: String
    /// The product that will renew; differs from `productID` if a change is scheduled.
    package let autoRenewProductID: String?
    /// Whether it will renew.
    package let autoRenewStatus: Bool?
    /// The reason it expired, `1` to `5`, raw: 1 renewal off, 2 billing, 3 price, 4 product not for sale, 5 other.
    package let expirationIntent: String?
    /// Whether Apple is still trying to charge; also true during grace.
    package let isInBillingRetry: Bool?
    /// The end of access during grace; remains in the data after grace is over.
    package let graceExpiresAt: Int64?
    /// The notation of the end of grace.
    package let graceForm: DateForm?
    /// `0` or `1` once the customer was informed of an increase that needs consent, raw.
    package let priceConsentStatus: String?
    /// `0` not answered, `1` agreed or no consent needed, raw.
    package let priceIncreaseStatus: String?
    /// The promotional offer of the next renewal.
    package let promotionalOfferID: String?
    /// The offer code of the next renewal.
    package let offerCodeRefName: String?

    /// Returns the path of one field, for an explanation: `pending_renewal_info[0].auto_renew_status`.
    package func path(of field: String) -> String { path.isEmpty ? field : path + "." + field }

    /// Returns the name of the first field that makes an object a renewal; nil if there is none.
    static func firstWord(in fields: LenientFields) -> String? {
        let words: [AnswerField] = [
            .autoRenewStatus, .autoRenewProductID, .expirationIntent, .isInBillingRetryPeriod, .priceConsentStatus,
            .priceIncreaseStatus,
        ]
        if let word = words.first(where: { fields.text($0) != nil }) { return word.name }
        return [.milliseconds, .plain].first { fields.text(.gracePeriodExpires, $0) != nil }
            .map { AnswerDate.gracePeriodExpires.name + $0.suffix }
    }

    /// Reads a row; nil if it contains no renewal field, or if its subscription cannot be determined.
    init?(reading fields: LenientFields, path: String, among known: inout KnownSubscriptions) {
        guard Self.firstWord(in: fields) != nil else { return nil }
        let renewsTo = fields.text(.autoRenewProductID)
        let named = fields.identifier(.originalTransactionID)
        let product = fields.text(.productID) ?? known.newestProduct(of: named) ?? renewsTo
        guard let product, let original = named ?? known.onlySubscription(of: product) else { return nil }
        self.path = path
        originalTransactionID = original
        productID = product
        autoRenewProductID = renewsTo
        autoRenewStatus = fields.flag(.autoRenewStatus)
        expirationIntent = fields.text(.expirationIntent)
        isInBillingRetry = fields.flag(.isInBillingRetryPeriod)
        graceExpiresAt = fields.instant(.gracePeriodExpires)
        graceForm = fields.form(of: .gracePeriodExpires)
        priceConsentStatus = fields.text(.priceConsentStatus)
        priceIncreaseStatus = fields.text(.priceIncreaseStatus)
        promotionalOfferID = fields.text(.promotionalOfferID)
        offerCodeRefName = fields.text(.offerCodeRefName)
    }
}
