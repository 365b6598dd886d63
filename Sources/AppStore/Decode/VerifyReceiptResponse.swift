package import JSON
package import Subscriptions
import Synchronization

/// A verifyReceipt answer (Apple: "responseBody"), decoded leniently: Apple's statements as typed values, without
/// conclusions.
///
/// Accepts unified answers (iOS 7 and later) and legacy ones; strings, numbers or booleans; an array or a single
/// object. The rows have no clock yet: whether Apple's counts is decided where the answer becomes ``Evidence``.
package struct VerifyReceiptResponse: Sendable, Hashable {
    /// Apple's status code; nil if there is none, and then the answer says nothing.
    package let status: Int?
    /// The store that answered; old answers omit it.
    package let environment: StoreEnvironment?
    /// Whether another try may help; Apple documents it for 21100 to 21199.
    package let isRetryable: Bool?
    /// An undocumented text beside 21002.
    package let exception: String?
    /// The app of the receipt: `bundle_id`, in legacy answers `bid`.
    package let bundleID: BundleID?
    /// Whether the answer is about an iOS 6 style transaction receipt.
    package let isLegacy: Bool
    /// The creation of the receipt: the instant for which `inApp` speaks.
    package let receiptCreatedAt: Instant?
    /// Apple's clock at this call: the instant for which everything else speaks.
    package let requestedAt: Instant?
    /// The rows of the device's receipt; in legacy answers the receipt itself.
    package let inApp: [TransactionRow]
    /// The rows of Apple's own knowledge, in the order received, which has no meaning.
    package let latestReceiptInfo: [TransactionRow]
    /// Apple's information about coming renewals.
    package let renewals: [RenewalRow]
    /// The newest receipt in Base64, suitable for the next request.
    package let latestReceipt: String?
    /// The paths of rows that could not be read, at most 1,000.
    package let unreadableRows: [String]

    /// Whether every row of Apple's own knowledge could be read, regardless of the device's receipt.
    package var isComplete: Bool { unreadableRows.allSatisfy { $0.hasPrefix(AnswerField.receipt.name) } }

    /// Decodes a body. Throws if it is not one complete JSON object; such a body says nothing about the receipt.
    package init(parsing body: [UInt8]) throws(NotJSON) {
        let text = try JSONDocument(body)
        guard text.nodes[JSONDocument.root].isObject else { throw NotJSON("JSON that is not an object") }
        let top = LenientFields(text, at: JSONDocument.root)
        status = top.integer(.status).flatMap { Int(exactly: $0) }
        environment = StoreEnvironment(named: top.text(.environment))
        isRetryable = top.flag(.isRetryable) ?? top.flag(.isRetryableUnderscored)
        exception = top.word(.exception)
        latestReceipt = top.text(.latestReceipt)

        let receipt = ReceiptPart(of: top, in: text)
        isLegacy = receipt.isLegacy
        bundleID = receipt.bundleID
        receiptCreatedAt = receipt.fields?.instant(.receiptCreation)
        requestedAt = receipt.fields?.instant(.request) ?? top.instant(.request)

        var reader = RowReader(text: text)
        let device = try reader.transactions(receipt.rows, path: receipt.rowsPath, .deviceReceipt)
        var latest = try reader.transactions(
            top.value(.latestReceiptInfo), path: AnswerField.latestReceiptInfo.name, .latestReceiptInfo)
        latest += try reader.transactions(
            top.value(.latestExpiredReceiptInfo), path: AnswerField.latestExpiredReceiptInfo.name, .latestReceiptInfo)
        inApp = isLegacy ? device.map { $0.replaced(by: latest) } : device
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
    let bundleID: BundleID?
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

    private static func bundleID(in fields: LenientFields) -> BundleID? {
        (fields.word(.bundleID) ?? fields.word(.bid)).map { BundleID($0) }
    }
}

extension Evidence {
    /// Reads the evidence in an answer that Apple vouches for; it may not name the `environment` that was asked. Rows
    /// of `latest_receipt_info` and `pending_renewal_info` speak for `asOf`, rows of `in_app` for
    /// `receipt_creation_date`: a receipt is never created later than the request about it.
    package init(
        in response: VerifyReceiptResponse, from environment: StoreEnvironment, asOf: Instant, clockAhead: Delay?
    ) {
        let createdAt = response.receiptCreatedAt.map { min($0, asOf) }
        self.init(
            environment: response.environment ?? environment, bundleID: response.bundleID, asOf: asOf,
            receiptCreatedAt: createdAt, clockAhead: clockAhead,
            transactions: response.latestReceiptInfo.map { $0.speaking(for: asOf) }
                + response.inApp.map { $0.speaking(for: createdAt ?? asOf) },
            renewals: response.renewals.map { $0.speaking(for: asOf) }, isComplete: response.isComplete)
    }
}

extension Instant {
    /// The clock of a row whose answer has none yet.
    static let undated = Instant(milliseconds: 0)
}

extension TransactionRow {
    fileprivate func speaking(for instant: Instant) -> TransactionRow {
        var row = self
        row.asOf = instant
        return row
    }

    /// The row of a legacy receipt with the mark of an upgrade that its form lacks: Apple cancelled it in the second in which
    /// the newest period of its subscription began with another product.
    fileprivate func replaced(by newest: [TransactionRow]) -> TransactionRow {
        guard let cancelledAt, expiresAt != nil else { return self }
        var row = self
        row.isUpgraded =
            isUpgraded
            || newest.contains {
                $0.originalTransactionID == originalTransactionID && $0.productID != productID && $0.expiresAt != nil
                    && abs($0.purchasedAt.milliseconds - cancelledAt.milliseconds) < 1_000
            }
        return row
    }

    /// Reads a row about a purchase or a period (Apple: "responseBody.Latest_receipt_info", "responseBody.Receipt.In_app").
    ///
    /// Returns nil if it lacks a product, a transaction or a purchase instant, or contains an instant that cannot be read.
    /// Without its expiry a subscription would be a purchase and never end; without its cancellation a refund would be
    /// missed. Apple never sends a row without its transaction. Such a row gets a name made of its original transaction and
    /// purchase instant (`1000/1432400579000`), so that two periods never share one.
    init?(reading fields: LenientFields, path: String, _ source: EvidenceSource) {
        let (starts, ends) = (fields.instant(.purchase), fields.instant(.expires))
        let cancelled = fields.instant(.cancellation)
        guard starts != nil || !fields.mentions(.purchase), ends != nil || !fields.mentions(.expires),
            cancelled != nil || !fields.mentions(.cancellation), let productID = fields.word(.productID),
            let purchasedAt = starts ?? fields.instant(.originalPurchase)
        else { return nil }
        let transaction: TransactionID? = fields.identifier(.transactionID)
        let named: OriginalTransactionID? = fields.identifier(.originalTransactionID)
        guard let original = named ?? transaction.map({ OriginalTransactionID($0.text) }) else { return nil }
        // Some sources write zero for no value: there were no refunds in 1970.
        let cancelledAt = cancelled.flatMap { $0.milliseconds == 0 ? nil : $0 }
        self.init(
            path: path, source: source, asOf: .undated,
            transactionID: transaction ?? "\(original)/\(purchasedAt.milliseconds)", originalTransactionID: original,
            productID: ProductID(productID), purchasedAt: purchasedAt)
        webOrderLineItemID = fields.identifier(.webOrderLineItemID)
        quantity = fields.integer(.quantity).flatMap { (1...1_000_000).contains($0) ? Int($0) : nil } ?? 1
        (expiresAt, expiryForm) = (ends, fields.form(of: .expires))
        (self.cancelledAt, cancellationReason) = (cancelledAt, fields.word(.cancellationReason))
        cancellationForm = cancelledAt == nil ? nil : fields.form(of: .cancellation)
        isUpgraded = fields.flag(.isUpgraded) ?? false
        self.originalPurchasedAt = fields.instant(.originalPurchase)
        self.isTrial = fields.flag(.isTrialPeriod)
        self.isIntro = fields.flag(.isInIntroOfferPeriod)
        self.promotionalOfferID = fields.word(.promotionalOfferID)
        self.offerCodeRefName = fields.word(.offerCodeRefName)
        self.groupID = fields.identifier(.subscriptionGroupIdentifier)
        self.ownership = fields.word(.ownershipType).map(Ownership.init(raw:))
        self.appAccountToken = fields.word(.appAccountToken)
    }
}

extension RenewalRow {
    fileprivate func speaking(for instant: Instant) -> RenewalRow {
        var row = self
        row.asOf = instant
        return row
    }

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

    /// Reads a row about the next renewal of one subscription (Apple: "responseBody.Pending_renewal_info"), in old
    /// answers of the only one with its product; nil if it contains no renewal field, or without a subscription.
    init?(reading fields: LenientFields, path: String, among known: inout AnsweredSubscriptions) {
        guard Self.firstWord(in: fields) != nil else { return nil }
        let renewsTo = fields.word(.autoRenewProductID).map { ProductID($0) }
        let named: OriginalTransactionID? = fields.identifier(.originalTransactionID)
        let product = fields.word(.productID).map { ProductID($0) } ?? known.newestProduct(of: named) ?? renewsTo
        guard let product, let original = named ?? known.onlySubscription(of: product) else { return nil }
        var renewal = Renewal(productID: product)
        (renewal.renewsToProductID, renewal.willRenew) = (renewsTo, fields.flag(.autoRenewStatus))
        renewal.expirationIntent = fields.word(.expirationIntent)
        renewal.inBillingRetry = fields.flag(.isInBillingRetryPeriod)
        renewal.graceExpiresAt = fields.instant(.gracePeriodExpires)
        renewal.priceConsentStatus = fields.word(.priceConsentStatus)
        renewal.priceIncreaseStatus = fields.word(.priceIncreaseStatus)
        renewal.promotionalOfferID = fields.word(.promotionalOfferID)
        renewal.offerCodeRefName = fields.word(.offerCodeRefName)
        self.init(
            path: path, asOf: .undated, originalTransactionID: original, renewal: renewal,
            graceForm: fields.form(of: .gracePeriodExpires))
    }
}

/// The subscriptions of an answer's rows, for a renewal that names none; they are searched once, and only on demand.
struct AnsweredSubscriptions {
    let rows: [TransactionRow]

    /// Returns the product of the row that ends last, in the subscription `original` or, if that is nil, in all rows.
    mutating func newestProduct(of original: OriginalTransactionID?) -> ProductID? {
        guard let original else { return rows.max(by: Self.endsBefore)?.productID }
        return newest[original]?.productID
    }

    /// Returns the one subscription with this product; nil if there is none or more than one.
    mutating func onlySubscription(of product: ProductID) -> OriginalTransactionID? {
        guard let originals = originals[product], originals.count == 1 else { return nil }
        return originals.first
    }

    lazy var newest = Dictionary(grouping: rows, by: \.originalTransactionID)
        .compactMapValues { $0.max(by: Self.endsBefore) }

    lazy var originals = Dictionary(grouping: rows, by: \.productID)
        .mapValues { Set($0.map(\.originalTransactionID)) }

    private static func endsBefore(_ one: TransactionRow, _ other: TransactionRow) -> Bool {
        (one.expiresAt ?? .undated, one.purchasedAt) < (other.expiresAt ?? .undated, other.purchasedAt)
    }
}
