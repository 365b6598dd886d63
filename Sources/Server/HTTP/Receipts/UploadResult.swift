import Ledger
import Subscriptions

/// Why a device sends a receipt.
enum UploadPurpose: String, Decodable, Sendable {
    /// It has just bought something, and waits for it.
    case purchase
    /// The app was launched.
    case launch
    /// The customer restores purchases.
    case restore
}

/// What a device asks of an upload.
struct UploadQuestion: Sendable {
    let purpose: UploadPurpose
    /// The order whose payment the device waits for.
    let orderID: String?
    /// The transaction that the device waits for.
    let transactionID: String?
}

/// What an upload answers a device: whether the purchase succeeded, what may be finished, and what to do next.
struct UploadResult: Sendable {
    /// Whether what the device asked for is there.
    enum Word: String {
        /// It is stored, not revoked, and this customer's; for other purposes: the receipt is valid.
        case succeeded
        /// There is no verdict yet, or the payment is deferred.
        case pending
        /// Apple refused the receipt or took the purchase back, or it is another customer's.
        case failed
        /// Apple vouches for the receipt, but it does not hold the purchase.
        case absent
    }

    /// Seconds after which a device tries again.
    static let retrySeconds: Int64 = 5

    let word: Word
    let advice: String?
    var contents = ReceiptPurchases.none
    var order: Order?

    /// The result while there is no verdict.
    static func pending(order: Order?) -> UploadResult {
        UploadResult(word: .pending, advice: "retry", order: order)
    }

    /// The result of a refusal.
    static func refused(_ refusal: Refusal.Kind?, order: Order?) -> UploadResult {
        UploadResult(word: .failed, advice: refusal == .notAuthentic ? "refresh_receipt" : nil, order: order)
    }

    /// The result where Apple vouches for the receipt.
    init(_ question: UploadQuestion, in contents: ReceiptPurchases, order: Order?) {
        let word = Self.word(question, in: contents, order: order)
        self.init(
            word: word, advice: word == .absent ? "refresh_receipt" : word == .pending ? "retry" : nil,
            contents: contents, order: order)
    }

    private init(word: Word, advice: String?, contents: ReceiptPurchases = .none, order: Order? = nil) {
        (self.word, self.advice, self.contents, self.order) = (word, advice, contents, order)
    }

    private static func word(_ question: UploadQuestion, in contents: ReceiptPurchases, order: Order?) -> Word {
        guard question.purpose == .purchase else { return .succeeded }
        guard let id = question.transactionID ?? order?.transactionID else {
            return order?.state == .deferred ? .pending : .absent
        }
        guard let item = contents.item(id) else { return .absent }
        return item.isOwned && !item.isRevoked ? .succeeded : .failed
    }

    /// The members that every answer to an upload has, by name.
    var members: [String: JSONValue] {
        [
            "advice": .optional(advice),
            "deliveries": .array(contents.deliveries.map(\.json)),
            "may_finish": .array(contents.finishable.map { .string($0) }),
            "may_finish_restored": .array(contents.restorable.map { .string($0) }),
            "order": order?.json ?? .null,
            "purchases": .array(contents.items.filter { !$0.isPeriod }.map(\.json)),
            "result": .string(word.rawValue),
            "retry_after_s": advice == "retry" ? .integer(Self.retrySeconds) : .null,
        ]
    }
}

extension ReceiptPurchases.Item {
    fileprivate var json: JSONValue {
        [
            "environment": .string(environment.rawValue),
            "transaction_id": .string(transactionID),
            "original_transaction_id": .string(originalTransactionID.text),
            "product_id": .string(productID.text),
            "quantity": .integer(Int64(quantity)),
            "purchased_at": .string(purchasedAt.iso8601),
            "revoked_at": .optional(revokedAt?.iso8601),
            "owned": .bool(isOwned),
        ]
    }
}
