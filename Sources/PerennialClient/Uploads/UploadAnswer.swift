public import Foundation

/// What the server says of an upload. Finish the transactions that it names: they are stored.
public struct UploadAnswer: Sendable, Hashable, Decodable {
    /// Whether what the upload asked for is there. A newer server may know further words; these keep their text.
    public struct Result: RawRepresentable, Hashable, Sendable, Decodable {
        /// The server's word.
        public let rawValue: String
        /// Makes a result of a word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The purchase is stored, not revoked, and this customer's; for `launch` and `restore`: the receipt is valid.
        public static let succeeded = Result(rawValue: "succeeded")
        /// There is no verdict yet, or the payment is deferred.
        public static let pending = Result(rawValue: "pending")
        /// Apple refused the receipt or took the purchase back, or it is another customer's.
        public static let failed = Result(rawValue: "failed")
        /// Apple vouches for the receipt, but it lacks the purchase.
        public static let absent = Result(rawValue: "absent")
    }

    /// What to do next. A newer server may know further words; these keep their text.
    public struct Advice: RawRepresentable, Hashable, Sendable, Decodable {
        /// The server's word.
        public let rawValue: String
        /// Makes an advice of a word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Send it again after ``UploadAnswer/retryAfterSeconds``. An ``UploadQueue`` does.
        public static let retry = Advice(rawValue: "retry")
        /// Let the device get a new receipt from Apple, and upload that.
        public static let refreshReceipt = Advice(rawValue: "refresh_receipt")
    }

    /// How far the sender is believed. A newer server may know further words; these keep their text.
    public struct Vouching: RawRepresentable, Hashable, Sendable, Decodable {
        /// The server's word.
        public let rawValue: String
        /// Makes a vouching of a word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Apple vouched for the receipt.
        public static let vouched = Vouching(rawValue: "vouched")
        /// Apple signed the transaction.
        public static let signed = Vouching(rawValue: "signed")
        /// Nothing proves that the sender made the purchase: it takes nothing from an owner.
        public static let pointer = Vouching(rawValue: "pointer")
    }

    /// Whether what the upload asked for is there.
    public let result: Result
    /// What to do next; nil: nothing.
    public let advice: Advice?
    /// When to send it again, in seconds.
    public let retryAfterSeconds: Double?
    /// The transactions that the app may finish.
    public let mayFinish: [String]
    /// The original transactions whose restored and renewed copies the app may finish too.
    public let mayFinishRestored: [String]
    /// The order that the upload named.
    public let order: Order?
    /// What was and is to be delivered of the receipt.
    public let deliveries: [Delivery]
    /// The one-time purchases in the receipt; empty in an answer to a device.
    public let purchases: [Purchase]
    /// What the customer may use; empty in an answer to a device, and while there is no verdict.
    public let entitlements: [Entitlement]
    /// The receipt's id at the server.
    public let receiptID: String?
    /// How far the sender is believed; nil in an answer to a device, and while there is no verdict.
    public let vouching: Vouching?
    /// Why Apple does not vouch for the receipt, or has not answered; one sentence.
    public let reason: String?

    enum CodingKeys: String, CodingKey {
        case result, advice, order, deliveries, purchases, entitlements, reason, detail, vouching
        case retryAfterSeconds = "retry_after_s"
        case mayFinish = "may_finish"
        case mayFinishRestored = "may_finish_restored"
        case receiptID = "receipt_id"
    }

    /// Reads an answer of 200 or 202, or a problem `receipt-rejected`, whose `detail` is the reason.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        result = try container.decode(Result.self, forKey: .result)
        advice = try container.decodeIfPresent(Advice.self, forKey: .advice)
        retryAfterSeconds = try container.decodeIfPresent(Double.self, forKey: .retryAfterSeconds)
        mayFinish = try container.decode([String].self, forKey: .mayFinish)
        mayFinishRestored = try container.decode([String].self, forKey: .mayFinishRestored)
        order = try container.decodeIfPresent(Order.self, forKey: .order)
        deliveries = try container.decodeIfPresent([Delivery].self, forKey: .deliveries) ?? []
        purchases = try container.decodeIfPresent([Purchase].self, forKey: .purchases) ?? []
        entitlements = try container.decodeIfPresent([Entitlement].self, forKey: .entitlements) ?? []
        receiptID = try container.decodeIfPresent(String.self, forKey: .receiptID)
        vouching = try container.decodeIfPresent(Vouching.self, forKey: .vouching)
        let reason = try container.decodeIfPresent(String.self, forKey: .reason)
        self.reason = try reason ?? container.decodeIfPresent(String.self, forKey: .detail)
    }
}

/// A one-time purchase in a receipt.
public struct Purchase: Sendable, Hashable, Decodable {
    /// Apple's transaction.
    public let transactionID: String
    /// The product.
    public let productID: String
    /// How many.
    public let quantity: Int
    /// Apple's date of the purchase.
    public let purchasedAt: Date
    /// When Apple took it back; nil while it is good.
    public let revokedAt: Date?
    /// Whether the customer of the upload owns it.
    public let isOwned: Bool?

    enum CodingKeys: String, CodingKey {
        case quantity
        case transactionID = "transaction_id"
        case productID = "product_id"
        case purchasedAt = "purchased_at"
        case revokedAt = "revoked_at"
        case isOwned = "owned"
    }
}

/// What a purchase or a period gives, once. Odd turns give, even turns take back.
public struct Delivery: Sendable, Hashable, Decodable {
    /// The delivery's id.
    public let id: String
    /// The product.
    public let productID: String
    /// The credit that a consumable gives, such as `gold`.
    public let credit: String?
    /// How much of the credit. Never negative: add it where the turn is odd, subtract it where it is even.
    public let units: Int?
    /// The turn, from 1.
    public let turn: Int
    /// Why, in the server's word: `purchase`, `renewal`, `refund`, `refund_reversed` or `transfer`.
    public let reason: String
    /// Where it is, in the server's word: `due`, `acknowledged` or `skipped`.
    public let state: String
    /// The order that the transaction pays.
    public let order: String?
    /// Apple's transaction.
    public let transactionID: String

    enum CodingKeys: String, CodingKey {
        case credit, units, turn, reason, state
        case id = "delivery_id"
        case productID = "product_id"
        case order = "order_id"
        case transactionID = "transaction_id"
    }
}

/// What became of an upload.
public enum UploadReport: Sendable {
    /// The server has answered. Finish what `mayFinish` names, follow the advice, and return: then the queue forgets the
    /// upload.
    case answered(UploadAnswer)
    /// The server does not take it and never will, such as a text that is no receipt, or a refused proof. Nothing was
    /// stored. When the handler returns, the queue forgets the upload.
    case refused(PerennialError)
    /// There is no verdict yet; the queue sends it again after these seconds. What `mayFinish` names may be finished.
    case pending(UploadAnswer, againAfterSeconds: Double)
    /// The server could not be asked; the queue sends it again after these seconds. An error with the disposition
    /// `alarm` needs a person.
    case failing(PerennialError, againAfterSeconds: Double)

    /// Whether the queue forgets the upload when the handler returns.
    public var isFinal: Bool {
        switch self {
        case .answered, .refused: true
        case .pending, .failing: false
        }
    }

    /// What an attempt means; `wait` gives the seconds until the next one by what the server advises.
    init(_ attempt: Result<UploadAnswer, PerennialError>, to upload: Upload, wait: (_ advised: Double?) -> Double) {
        switch attempt {
        case .success(let answer) where answer.advice == .retry || answer.result == .pending:
            self = .pending(answer, againAfterSeconds: wait(answer.retryAfterSeconds))
        case .success(let answer): self = .answered(answer)
        case .failure(let error):
            switch error.disposition {
            case .retry(let seconds): self = .failing(error, againAfterSeconds: wait(seconds))
            case .alarm: self = .failing(error, againAfterSeconds: wait(nil))
            // Only a service's upload names something that the server may not find: an order of the customer. Otherwise
            // the address is wrong, or the server is older.
            case .reject where error.problem?.kind == .notFound && !upload.isAboutCustomersOrder:
                self = .failing(error, againAfterSeconds: wait(nil))
            case .reject: self = .refused(error)
            }
        }
    }

    var againAfterSeconds: Double? {
        switch self {
        case .answered, .refused: nil
        case .pending(_, let seconds), .failing(_, let seconds): seconds
        }
    }
}
