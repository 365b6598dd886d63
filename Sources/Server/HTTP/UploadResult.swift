import Foundation
import JSON
import Subscriptions
import Tracking

/// Why a device sends a receipt.
enum UploadPurpose: String, Sendable, CaseIterable {
    /// It has just bought something and waits for it, the app was launched, or the customer restores purchases.
    case purchase, launch, restore
}

/// What a device asks of an upload.
struct UploadQuestion: Sendable {
    let bundleID: BundleID
    /// Whose purchases the device asks about.
    let customer: String
    let purpose: UploadPurpose
    /// The order whose payment the device waits for.
    let orderID: String?
    /// The transaction that the device waits for.
    let transactionID: String?
}

/// What an upload answers a device: whether the purchase succeeded, what may be finished, and what to do next.
struct UploadResult: Sendable {
    /// Whether what the device asked for is there.
    enum Word: String, CaseIterable {
        /// The order is paid; without one, the purchase is stored, not revoked, and this customer's; for other purposes,
        /// the receipt is valid.
        case succeeded
        /// There is no verdict yet, or the payment is deferred.
        case pending
        /// Apple refused the receipt or took the purchase back, or it is another customer's.
        case failed
        /// Apple vouches for the receipt, but it does not hold the purchase.
        case absent
    }

    /// What a device does next.
    enum Advice: String, CaseIterable {
        /// It gets a new receipt from Apple and sends that.
        case refreshReceipt = "refresh_receipt"
        /// It sends the same receipt again after `retrySeconds`.
        case retry
    }

    let word: Word
    let advice: Advice?
    /// Seconds after which a device that retries tries again.
    var retrySeconds: Int64 = 5
    var contents = ReceiptPurchases.none
    var order: Order?
}

extension UploadResult {
    /// The result while there is no verdict. The receipt cannot be asked about for `heldSeconds`, or should not be.
    static func pending(order: Order?, heldSeconds: Int? = nil) -> UploadResult {
        var result = UploadResult(word: .pending, advice: .retry, order: order)
        if let heldSeconds { result.retrySeconds = Int64(heldSeconds) }
        return result
    }

    /// The answer to a device after Apple refused its receipt, which may be worth another try after a minute.
    static func refused(_ retry: Settled.Retry, order: Order?) -> UploadResult {
        switch retry {
        case .vain: UploadResult(word: .failed, advice: nil, order: order)
        case .later, .soon: UploadResult(word: .failed, advice: .retry, retrySeconds: 60, order: order)
        }
    }

    /// The result where Apple vouches for the receipt.
    init(_ question: UploadQuestion, in contents: ReceiptPurchases, order: Order?) {
        let word = Self.word(question, in: contents, order: order)
        let advice: Advice? =
            switch word {
            case .succeeded, .failed: nil
            case .pending: .retry
            case .absent: .refreshReceipt
            }
        self.init(word: word, advice: advice, contents: contents, order: order)
    }

    private static func word(_ question: UploadQuestion, in contents: ReceiptPurchases, order: Order?) -> Word {
        guard question.purpose == .purchase else { return .succeeded }
        let named = question.transactionID.flatMap { contents.item($0) }
        guard let order else { return named?.word ?? .absent }
        if let id = question.transactionID, named == nil, order.transactionID != id { return .absent }
        // What was bought too long before the order says nothing about it.
        let about = named.flatMap { $0.isInTime(for: order) ? $0 : nil }
        if let about, about.isLost(to: order) { return .failed }
        let payer = order.transactionID.flatMap { contents.item($0) }
        let fit = contents.fit(for: order, naming: about?.transactionID)
        switch order.state {
        // What was bought for an order that needed no payment may be lost to it.
        case .delivered where order.transactionID == nil:
            if case .refused = fit { return .failed }
            return .succeeded
        // Another customer may own the payer by now, and may have been given it.
        case .paid, .delivered: return payer?.isRevoked == true ? .failed : .succeeded
        case .refunded: return payer?.word ?? .failed
        case .deferred: return .pending
        case .created, .purchasing, .cancelled, .failed, .expired: break
        }
        switch fit {
        case .owned: return .succeeded
        case .refused: return .failed
        case .nothing: return .absent
        }
    }

    /// Whether asking Apple again in a moment may bring what is missing, because its answers lag behind a purchase.
    var mayChangeSoon: Bool { word == .absent || word == .failed && order?.transactionID == nil && order != nil }

    /// The members that every answer to an upload has, by name.
    var members: [String: JSONValue] {
        [
            "advice": .optional(advice?.rawValue),
            "deliveries": .array(contents.deliveries.map(\.json)),
            "may_finish": .array(contents.finishable.map { .string($0) }),
            "may_finish_restored": .array(contents.restorable.map { .string($0) }),
            "order": order?.json ?? .null,
            "purchases": .array(contents.items.filter { !$0.isPeriod }.map(\.json)),
            "result": .string(word.rawValue),
            "retry_after_s": .optional(advice == .retry ? retrySeconds : nil),
        ]
    }
}

extension ReceiptPurchases.Item {
    /// The result for a device that waits for it. What is used up is worth what it gives, and a pointer gives nothing.
    fileprivate var word: UploadResult.Word {
        guard isOwned, !isRevoked, isRestorable || !isGivenToAnother else { return .failed }
        return isRestorable || !isPointed ? .succeeded : .absent
    }

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
