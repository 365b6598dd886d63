/// A verifyReceipt answer, decoded leniently: what Apple said, in types, with nothing concluded.
///
/// Takes unified answers (iOS 7 and later) and legacy ones; strings, numbers or booleans; an array or a single object.
/// Instants are milliseconds since 1970. Apple: "responseBody", App Store Receipts.
public struct VerifyReceiptResponse: Sendable, Hashable {
    /// Apple's status code; nil when there is none, and then the answer says nothing.
    public let status: Int?
    /// `Production` or `Sandbox` as Apple wrote it; old answers leave it out.
    public let environment: String?
    /// Whether another try may help; Apple documents it for 21100 to 21199.
    public let isRetryable: Bool?
    /// An undocumented text beside 21002.
    public let exception: String?
    /// Whose receipt this is: `bundle_id`, in legacy answers `bid`.
    public let bundleID: String?
    /// Whether the answer is about an iOS 6 style transaction receipt.
    public let isLegacy: Bool
    /// When the receipt was made: the instant for which `inApp` speaks.
    public let receiptCreatedAt: Int64?
    /// Apple's clock at this call: the instant for which everything else speaks.
    public let requestedAt: Int64?
    /// Rows of the device's receipt; in legacy answers the receipt itself.
    public let inApp: [TransactionFields]
    /// Rows of Apple's own knowledge, in the order they came, which means nothing.
    public let latestReceiptInfo: [TransactionFields]
    /// What Apple says about coming renewals.
    public let renewals: [RenewalFields]
    /// The newest receipt in Base64, fit to be asked about next time.
    public let latestReceipt: String?
    /// Paths of rows that could not be read, at most 1,000.
    public let unreadableRows: [String]

    /// Decodes a body. Throws when it is not one complete JSON object; then it says nothing about the receipt.
    public init(parsing body: [UInt8]) throws(AnswerUnreadable) {
        let top = try JSONReader.read(body).root
        guard top.isObject else { throw AnswerUnreadable("JSON that is not an object") }
        let fields = LenientFields(object: top)
        status = fields.whole("status").flatMap { Int(exactly: $0) }
        environment = fields.text("environment")
        isRetryable = fields.flag("is-retryable") ?? fields.flag("is_retryable")
        exception = fields.text("exception")
        latestReceipt = fields.text("latest_receipt")

        let receipt = ReceiptPart(of: top)
        isLegacy = receipt.isLegacy
        bundleID = receipt.bundleID
        receiptCreatedAt = receipt.fields?.instant("receipt_creation_date")
        requestedAt = receipt.fields?.instant("request_date") ?? fields.instant("request_date")

        var reader = RowReader()
        inApp = reader.transactions(receipt.rows, path: receipt.rowsPath)
        latestReceiptInfo =
            reader.transactions(top.member("latest_receipt_info"), path: "latest_receipt_info")
            + reader.transactions(top.member("latest_expired_receipt_info"), path: "latest_expired_receipt_info")
        // Apple's own knowledge tells better than the device's receipt which subscription an unnamed renewal means.
        let rows = latestReceiptInfo.isEmpty ? inApp : latestReceiptInfo
        let pending = top.member("pending_renewal_info")
        if pending.map(\.isAbsent) ?? true {
            renewals = reader.legacyRenewal(top, among: rows)
        } else {
            renewals = reader.renewals(pending, path: "pending_renewal_info", among: rows)
        }
        unreadableRows = reader.unreadable
    }
}

/// The `receipt` of an answer: app-level fields with rows in `in_app`, or in legacy answers one row itself.
struct ReceiptPart {
    let fields: LenientFields?
    let isLegacy: Bool
    let bundleID: String?
    let rows: JSONValue?
    let rowsPath: String

    init(of top: JSONValue) {
        let member = top.member("receipt")
        let isWrapped = member?.isArray ?? false
        let receipt = isWrapped ? member?.elements.first : member
        let path = isWrapped ? "receipt[0]" : "receipt"
        let latest = [top.member("latest_receipt_info"), top.member("latest_expired_receipt_info")]
        let inApp = receipt?.member("in_app")
        let isRow = ["product_id", "transaction_id", "original_transaction_id"].contains { receipt?.member($0) != nil }
        isLegacy = inApp == nil && (isRow || latest.contains { $0?.isObject ?? false })
        rows = isRow && inApp == nil ? receipt : inApp
        rowsPath = isRow && inApp == nil ? path : path + ".in_app"
        fields = receipt.map { LenientFields(object: $0) }
        let speakers = [receipt] + latest + [top]
        bundleID =
            speakers.lazy.compactMap { $0.map { LenientFields(object: $0) } }
            .compactMap { $0.text("bundle_id") ?? $0.text("bid") }.first
    }
}
