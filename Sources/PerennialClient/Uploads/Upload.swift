public import Foundation

#if canImport(CryptoKit)
    import CryptoKit
#else
    import Crypto
#endif

/// What a device has of its purchases, on its way to the server, with what its sender asks.
public struct Upload: Sendable, Hashable, Codable, Identifiable, CustomStringConvertible {
    /// Why a device sends a receipt.
    public enum Purpose: String, Sendable, Hashable, Codable {
        /// It has just bought something and waits for it.
        case purchase
        /// The app was launched.
        case launch
        /// The customer restores purchases.
        case restore
    }

    /// What a device has: one of Apple's three forms.
    public enum Subject: Sendable, Hashable, Codable {
        /// A receipt in Base64.
        case receipt(String)
        /// A signed transaction of StoreKit 2, its `jwsRepresentation`. The server verifies Apple's signature.
        case signedTransaction(String)
        /// The id of a transaction. It proves nothing, so it takes nothing from an owner.
        case transactionID(String)

        var text: String {
            switch self {
            case .receipt(let text), .signedTransaction(let text), .transactionID(let text): text
            }
        }

        /// The name of the form in the server's words, which is its field in the body of an upload.
        var name: String {
            switch self {
            case .receipt: "receipt"
            case .signedTransaction: "signed_transaction"
            case .transactionID: "transaction_id"
            }
        }
    }

    /// Your own id of the customer; nil where a device sends it about an order.
    public let customer: String?
    /// The order whose payment the sender waits for.
    public let order: String?
    /// The transaction that the sender waits for.
    public let transactionID: String?
    /// What the device has.
    public let subject: Subject
    /// Why it is sent.
    public let purpose: Purpose
    /// The storefront that the device saw.
    public let storefront: String?
    /// The price that the device saw.
    public let price: Price?
    /// What proves that a device's receipt is about the order. It holds for this receipt and this order only.
    let proof: String?

    /// An upload of a service, which has a key of scope `write`: a receipt in Base64, as the device sent it. The server
    /// repairs the usual damage of transport. For the rest see
    /// ``init(_:customer:purpose:order:transactionID:storefront:price:)``.
    public init(
        receipt: String, customer: String, purpose: Purpose = .launch, order: String? = nil,
        transactionID: String? = nil, storefront: String? = nil, price: Price? = nil
    ) {
        self.init(
            .receipt(receipt), customer: customer, purpose: purpose, order: order, transactionID: transactionID,
            storefront: storefront, price: price)
    }

    /// An upload of a service, which has a key of scope `write`: a receipt, a signed transaction or a transaction's id.
    /// - Parameters:
    ///   - subject: What the device sent.
    ///   - customer: Your own id of the customer, 1 to 255 characters.
    ///   - purpose: Why the device sends it. A `purchase` names its order or its transaction.
    ///   - order: The order of this customer whose payment the device waits for.
    ///   - transactionID: The transaction that the device waits for.
    ///   - storefront: The storefront that the device saw.
    ///   - price: The price that the device saw.
    public init(
        _ subject: Subject, customer: String, purpose: Purpose = .launch, order: String? = nil,
        transactionID: String? = nil, storefront: String? = nil, price: Price? = nil
    ) {
        self.customer = customer
        self.order = order
        self.transactionID = transactionID
        self.subject = subject
        self.purpose = purpose
        self.storefront = storefront
        self.price = price
        proof = nil
    }

    /// An upload of a device about an order of its own. It holds a proof instead of the order's key.
    ///
    /// Throws `invalid` when the order's key is not Base64. The server takes at most 1 MiB of a device, the receipt in
    /// Base64 and the proof together.
    /// - Parameter receipt: The bytes of the receipt's file.
    public init(receipt: Data, of order: PlacedOrder) throws {
        customer = nil
        self.order = order.id
        transactionID = nil
        subject = .receipt(receipt.base64EncodedString())
        purpose = .purchase
        storefront = nil
        price = nil
        proof = try order.proof(ofReceipt: receipt)
    }

    /// The name of what is asked: equal uploads have the same. 64 lower-case hex digits.
    public var id: String {
        let parts = [
            customer, order, transactionID, subject.name, subject.text, purpose.rawValue, storefront, price?.amount,
            price?.currency, proof,
        ]
        let text = parts.map { $0.map { "\($0.utf8.count):\($0)" } ?? "-" }.joined()
        return SHA256.hash(data: Data(text.utf8)).hexadecimal
    }

    /// Whether a service sends it about an order, which has to be the customer's.
    var isAboutCustomersOrder: Bool { customer != nil && order != nil }

    /// Throws `invalid` for what no server takes.
    func requireUsable() throws {
        guard !subject.text.isEmpty else {
            throw PerennialError(.invalid, "An upload has a receipt, a signed transaction or a transaction's id.")
        }
        guard customer != "" else { throw PerennialError(.invalid, "A customer's id is not empty.") }
        guard purpose != .purchase || order != nil || transactionID != nil else {
            throw PerennialError(.invalid, "A purchase names its order or its transaction.")
        }
    }

    /// Its name and whom it is about, without what the device has and the proof.
    public var description: String {
        "upload \(id.prefix(12)) of " + (order.map { "order \($0)" } ?? customer.map { "customer \($0)" } ?? "nothing")
    }
}

/// The limits of an upload queue.
public struct UploadLimits: Sendable, Hashable {
    /// The most uploads that wait. A further one is refused with `full`.
    public var entriesMax = 1_000
    /// The longest receipt, in bytes of its Base64.
    public var receiptBytesMax = 4 << 20
    /// The most bytes of all receipts that wait, in Base64: the queue holds them in memory. More are refused with `full`.
    public var totalBytesMax = 64 << 20
    /// The most uploads under way at once.
    public var sendingMax = 4
    /// The longest first wait before an upload is sent again, in seconds; it doubles with each attempt.
    public var retrySecondsMin: Double = 1
    /// The longest wait before an upload is sent again, in seconds, whatever the server advises.
    public var retrySecondsMax: Double = 3_600

    /// The default limits.
    public init() {}

    /// Seconds until an upload is sent again: what the server advises, and up to a bound that doubles with each attempt
    /// (full jitter), so that a thousand devices do not come back at once. `attempts` counts from 1.
    func retrySeconds(
        after attempts: Int, advised: Double?, using random: (ClosedRange<Double>) -> Double = { .random(in: $0) }
    ) -> Double {
        let doublings = min(max(0, attempts - 1), 30)
        let bound = min(max(0, retrySecondsMax), max(0, retrySecondsMin) * Double(1 << doublings))
        return min(max(0, advised ?? 0) + random(0...bound), max(0, retrySecondsMax))
    }
}

extension PerennialServer {
    /// Sends an upload and returns what the server says of it, also where Apple does not vouch for it.
    ///
    /// A service needs a key of scope `write`; a device's upload goes without one, by its proof. It may take
    /// ``uploadSeconds``. Sending the same upload again is harmless. It throws where the server gave no such answer:
    /// then the receipt may or may not be stored. An ``UploadQueue`` sends it again until there is an answer.
    public func send(_ upload: Upload) async throws -> UploadAnswer {
        try upload.requireUsable()
        let reply = try await reply(to: try call(for: upload))
        switch reply.status {
        case 200, 202: return try reply.decoded(as: UploadAnswer.self)
        case 422:
            let failure = reply.failure
            guard failure.problem?.kind == .receiptRejected else { throw failure }
            return try reply.decoded(as: UploadAnswer.self)
        default: throw reply.failure
        }
    }

    /// Returns the request that carries an upload: of a device by its proof, of a service by its key.
    private func call(for upload: Upload) throws -> Call {
        if let proof = upload.proof, let order = upload.order {
            return Call(
                path: "/v1/orders/\(try Call.part(order))/receipt",
                body: try JSONText.encode(["receipt": upload.subject.text, "proof": proof]),
                seconds: Self.uploadSeconds, isKeyed: false)
        }
        var body = [upload.subject.name: upload.subject.text, "purpose": upload.purpose.rawValue]
        body["customer"] = upload.customer
        body["order"] = upload.order
        body["for_transaction_id"] = upload.transactionID
        body["storefront"] = upload.storefront
        body["price"] = upload.price?.amount
        body["currency"] = upload.price?.currency
        return Call(path: try appPath("receipts"), body: try JSONText.encode(body), seconds: Self.uploadSeconds)
    }
}
