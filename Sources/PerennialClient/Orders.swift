public import Foundation

#if canImport(CryptoKit)
    import CryptoKit
#else
    import Crypto
#endif

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

/// One page of a customer's orders.
public struct OrderPage: Sendable, Hashable, Decodable {
    /// The orders, the oldest first.
    public let orders: [Order]
    /// The id to continue after; nil at the end.
    public let next: String?
}

extension PerennialServer {
    /// Places an order before its payment. Placing the same value again gives the same answer for 24 hours.
    ///
    /// Needs a key of scope `write`. Throws `too-many` where the customer has 20 open orders, `conflict` where another
    /// order has the `idempotencyKey`.
    public func place(_ order: NewOrder) async throws -> PlacedOrder {
        let body = OrderBody(
            customer: order.customer, productID: order.productID, quantity: order.quantity,
            price: order.price?.amount, currency: order.price?.currency, device: order.device)
        let call = Call(
            path: try appPath("orders"), body: try JSONText.encode(body),
            headers: ["Idempotency-Key": order.idempotencyKey])
        return try await answer(PlacedOrder.self, to: call, of: [200, 201])
    }

    /// An order and where it is. Needs a key of scope `read`; throws `not-found` for an id that the app has not.
    public func order(_ id: String) async throws -> Order {
        try await answer(Order.self, to: Call(path: try appPath("orders/\(try Call.part(id))")))
    }

    /// A customer's orders, the oldest first. Needs a key of scope `read`.
    /// - Parameters:
    ///   - customer: Your own id of the customer.
    ///   - state: Only orders in this state; nil gives all.
    ///   - after: The `next` of the page before; nil begins.
    ///   - limit: The most orders of the page, 1 to 1,000.
    public func orders(
        of customer: String, in state: OrderState? = nil, after: String? = nil, limit: Int = 1_000
    ) async throws -> OrderPage {
        var query = ["limit=\(limit)"]
        if let state { query.append("state=\(try Call.part(state.rawValue))") }
        if let after { query.append("after=\(try Call.part(after))") }
        let path = try appPath("customers/\(try Call.part(customer))/orders")
        return try await answer(OrderPage.self, to: Call(path: path + "?" + query.joined(separator: "&")))
    }
}

private struct OrderBody: Encodable {
    let customer: String
    let productID: String
    let quantity: Int
    let price: String?
    let currency: String?
    let device: String?

    enum CodingKeys: String, CodingKey {
        case customer, quantity, price, currency, device
        case productID = "product_id"
    }
}

/// Where a device's payment is.
public enum ReportedState: String, Sendable, Hashable, CaseIterable {
    /// The customer agreed, and the payment is under way.
    case purchasing
    /// Another person has to agree first (Ask to Buy).
    case deferred
    /// The customer cancelled.
    case cancelled
    /// The payment failed.
    case failed
}

extension PerennialServer {
    /// The longest code of a report, in bytes.
    public static let codeBytesMax = 255

    /// Reports where the payment of an order is. A device does so without an API key, with the order's key.
    ///
    /// Returns the order's state, which a paid or expired order keeps. Throws `proof-refused` for an order that the
    /// server does not know, or whose proof is wrong; `too-many` after 10 calls a minute about an order.
    /// - Parameter code: An error code of StoreKit, for example, at most ``codeBytesMax`` bytes.
    public func report(_ state: ReportedState, code: String? = nil, of order: PlacedOrder) async throws -> OrderState {
        var body = ["state": state.rawValue, "proof": try order.proof(state, code: code)]
        body["code"] = code
        let call = Call(
            path: "/v1/orders/\(try Call.part(order.id))/state", body: try JSONText.encode(body), isKeyed: false)
        return try await answer(StateAnswer.self, to: call).state
    }
}

extension PlacedOrder {
    /// Lower-case hex of HMAC-SHA256 with the order's key over `<order id>.<state>.<code, or nothing>`.
    func proof(_ state: ReportedState, code: String?) throws -> String {
        try proof(of: "\(id).\(state.rawValue).\(code ?? "")")
    }

    /// The same over `<order id>.<lower-case hex SHA-256 of the receipt>`.
    func proof(ofReceipt receipt: Data) throws -> String {
        try proof(of: "\(id).\(SHA256.hash(data: receipt).hexadecimal)")
    }

    private func proof(of message: String) throws -> String {
        guard let key = Data(base64Encoded: key) else {
            throw PerennialError(.invalid, "The key of order \(id) is not Base64.")
        }
        return HMAC<SHA256>.authenticationCode(for: Data(message.utf8), using: SymmetricKey(data: key)).hexadecimal
    }
}

extension Sequence<UInt8> {
    /// The bytes in lower-case hex.
    var hexadecimal: String { map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }
}

private struct StateAnswer: Decodable { let state: OrderState }
