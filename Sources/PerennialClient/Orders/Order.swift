public import Foundation

/// Where an order is. A newer server may know further states; these keep their text.
public struct OrderState: RawRepresentable, Hashable, Sendable, Codable {
    /// The server's word.
    public let rawValue: String
    /// Makes a state of a word.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// It was placed.
    public static let created = OrderState(rawValue: "created")
    /// The device reported that the payment began.
    public static let purchasing = OrderState(rawValue: "purchasing")
    /// The device reported that another person has to agree first.
    public static let deferred = OrderState(rawValue: "deferred")
    /// A transaction pays it.
    public static let paid = OrderState(rawValue: "paid")
    /// What it gives was delivered.
    public static let delivered = OrderState(rawValue: "delivered")
    /// The device reported that the customer cancelled.
    public static let cancelled = OrderState(rawValue: "cancelled")
    /// The device reported that the payment failed.
    public static let failed = OrderState(rawValue: "failed")
    /// It was not paid in time; a late payment still pays it.
    public static let expired = OrderState(rawValue: "expired")
    /// Apple refunded it, and what it gave was taken back.
    public static let refunded = OrderState(rawValue: "refunded")
}

/// A price that the customer was shown.
public struct Price: Sendable, Hashable, Codable {
    /// The amount in the currency's unit, exact to a thousandth, such as `0.99`.
    public let amount: String
    /// The currency, ISO 4217, such as `USD`.
    public let currency: String

    /// Makes a price.
    public init(_ amount: String, _ currency: String) {
        self.amount = amount
        self.currency = currency
    }
}

/// What a customer is about to buy.
///
/// It is made with an `Idempotency-Key` of its own. Store the value (it is `Codable`) before it is placed, and place
/// the same value again when the answer was lost: the server then gives the same answer for 24 hours.
public struct NewOrder: Sendable, Hashable, Codable {
    /// Your own id of the customer, 1 to 255 characters.
    public let customer: String
    /// A product of the catalog that has a kind.
    public let productID: String
    /// How many, 1 to 10.
    public let quantity: Int
    /// The price that the customer was shown.
    public let price: Price?
    /// Your own id of the device, 1 to 255 characters. The server keeps only a keyed hash of it.
    public let device: String?
    /// What makes a repetition the same order: a UUID.
    public let idempotencyKey: String

    /// Makes an order with a new `idempotencyKey`.
    public init(customer: String, productID: String, quantity: Int = 1, price: Price? = nil, device: String? = nil) {
        self.customer = customer
        self.productID = productID
        self.quantity = quantity
        self.price = price
        self.device = device
        idempotencyKey = UUID().uuidString.lowercased()
    }
}

/// An order as the server placed it. A service sends it to the device as it is: it is `Codable` in the server's form.
public struct PlacedOrder: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The order's id, a UUID.
    public let id: String
    /// The key of the order's proofs, 32 bytes in Base64. For the customer's device alone.
    public let key: String
    /// What the app passes to Apple with the purchase, a UUID: `appAccountToken` in StoreKit 2, `applicationUsername`
    /// in StoreKit 1.
    public let appAccountToken: String
    /// Where it is: `created`, or `delivered` where the customer owns the non-consumable already.
    public let state: OrderState
    /// When it expires if it is not paid.
    public let expiresAt: Date

    enum CodingKeys: String, CodingKey {
        case key, state
        case id = "order_id"
        case appAccountToken = "app_account_token"
        case expiresAt = "expires_at"
    }

    /// Makes an order that came to the device in another form.
    public init(id: String, key: String, appAccountToken: String, state: OrderState, expiresAt: Date) {
        self.id = id
        self.key = key
        self.appAccountToken = appAccountToken
        self.state = state
        self.expiresAt = expiresAt
    }

    /// Reads the server's form, whatever the decoder's strategy for dates is.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(String.self, forKey: .id)
        key = try container.decode(String.self, forKey: .key)
        appAccountToken = try container.decode(String.self, forKey: .appAccountToken)
        state = try container.decode(OrderState.self, forKey: .state)
        let instant = try container.decode(String.self, forKey: .expiresAt)
        guard let date = JSONText.date(instant) else {
            throw DecodingError.dataCorruptedError(
                forKey: .expiresAt, in: container, debugDescription: "\(instant) is no instant.")
        }
        expiresAt = date
    }

    /// Writes the server's form, whatever the encoder's strategy for dates is.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        try container.encode(key, forKey: .key)
        try container.encode(appAccountToken, forKey: .appAccountToken)
        try container.encode(state, forKey: .state)
        try container.encode(JSONText.text(expiresAt), forKey: .expiresAt)
    }

    /// The id and the state, without the key.
    public var description: String { "order \(id), \(state.rawValue)" }
}

/// An order and where it is.
public struct Order: Sendable, Hashable, Decodable {
    /// The order's id, a UUID.
    public let id: String
    /// Your own id of the customer; nil in an answer to a device.
    public let customer: String?
    /// The product.
    public let productID: String
    /// How many.
    public let quantity: Int
    /// Apple's environment, `Production` or `Sandbox`; nil until it is paid.
    public let environment: String?
    /// Where it is.
    public let state: OrderState
    /// What brought the state, such as `token`, `product`, `device` or `acknowledged`.
    public let cause: String?
    /// When it was placed.
    public let createdAt: Date
    /// When it expires if it is not paid.
    public let expiresAt: Date
    /// Apple's date of the transaction that pays it.
    public let paidAt: Date?
    /// Apple's transaction that pays it.
    public let transactionID: String?
    /// What it gives and took back.
    public let deliveryIDs: [String]?

    enum CodingKeys: String, CodingKey {
        case customer, quantity, environment, state, cause
        case id = "order_id"
        case productID = "product_id"
        case createdAt = "created_at"
        case expiresAt = "expires_at"
        case paidAt = "paid_at"
        case transactionID = "transaction_id"
        case deliveryIDs = "delivery_ids"
    }
}
