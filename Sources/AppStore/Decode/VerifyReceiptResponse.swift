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
