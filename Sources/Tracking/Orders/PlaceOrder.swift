import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions

/// What a customer is about to buy.
package struct OrderRequest: Sendable, Hashable {
    /// How many of a product one transaction can hold, as in StoreKit.
    package static let quantityAllowed: ClosedRange<Int32> = 1...10
    /// The longest id of a device, in bytes: an archived token of iCloud has some 400 characters.
    package static let deviceBytesMax = 4_096

    package var customer: String
    package var productID: ProductID
    package var quantity: Int32
    /// The price that the customer was shown, in thousandths of the currency's unit.
    package var priceMilliunits: Int64?
    package var currency: String?
    /// The app's own id of the device. Only a keyed hash of it is stored.
    package var device: String?

    package init(
        customer: String, productID: ProductID, quantity: Int32 = 1, priceMilliunits: Int64? = nil,
        currency: String? = nil, device: String? = nil
    ) {
        (self.customer, self.productID, self.quantity) = (customer, productID, quantity)
        (self.priceMilliunits, self.currency, self.device) = (priceMilliunits, currency, device)
    }

    /// Throws `invalid` unless the text can be a device's id.
    static func requireValidDevice(_ device: String) throws(LedgerError) {
        guard (1...deviceBytesMax).contains(device.utf8.count), !device.utf8.contains(0) else {
            throw LedgerError(.invalid, "A device's id has 1 to \(deviceBytesMax) bytes, and no NUL.")
        }
    }

    /// SHA-256 of everything that was asked.
    fileprivate var digest: [UInt8] {
        [
            customer, productID.text, "\(quantity)", priceMilliunits.map { "\($0)" } ?? "", currency ?? "",
            device ?? "",
        ].sha256
    }
}

extension SecretSeal {
    /// Returns the keyed hash of a device's id, as orders keep it.
    func hash(device: String, of bundleID: BundleID) throws -> [UInt8] {
        try hash(device, of: "device of \(bundleID)")
    }
}

/// An order as its placing is answered.
package struct PlacedOrder: Sendable, Hashable {
    /// The order's id, a UUID.
    package let id: String
    /// The key of the order's proofs, 32 bytes in Base64.
    package let key: String
    /// What the app passes to Apple with the purchase, a UUID.
    package let appAccountToken: String
    package let state: OrderState
    package let expiresAt: Instant
    /// Whether this call placed it; otherwise an earlier call with the same key did.
    package let isNew: Bool
}

extension LedgerOrders {
    /// The most open orders of a customer.
    package static let openMax: Int32 = 20
    /// How long an order waits for its payment; both follow the speed-up.
    package static let waits = Delay.days(1)
    /// How long an order waits that was deferred.
    package static let waitsDeferred = Delay.days(3)
    /// How often an order is tried: its key or customer may bring others at once, and the first try forgets an old key.
    private static let triesMax = 3
    /// The longest Idempotency-Key, in bytes.
    package static let requestKeyBytesMax = 255

    /// Places an order before its payment. Of `openMax` open ones, the oldest that nothing happened to gives way.
    ///
    /// A repetition with the same `requestKey` within 24 hours returns the same answer. A non-consumable that the
    /// customer owns is delivered already. Throws `invalid` for a request that cannot be placed, `exists` when the key
    /// placed another request, `exhausted` for too many open orders, `unknownApp` for an unknown app.
    package func place(_ request: OrderRequest, of bundleID: BundleID, requestKey: String) async throws -> PlacedOrder {
        try Self.require(request, requestKey: requestKey)
        guard let seal = ledger.seal else { throw LedgerError(.mismatch, "Orders need PERENNIAL_MASTER_KEY.") }
        let asked = try AskedOrder(request, of: bundleID, requestKey: requestKey, seal: seal)
        for _ in 0..<Self.triesMax {
            if let placed = try await ledger.askedOrders.answer(asked, by: { try await place($0) }) { return placed }
            if let earlier = try await recall(asked, seal) { return earlier }
            try await requireRoom(for: request, of: bundleID)
        }
        throw LedgerError(.exhausted(retryAfterSeconds: 1), "Other orders of the customer arrive at once; try again.")
    }

    /// How long before an order its purchase may be stored, in milliseconds.
    private static var late: Parameter { .int8(Payment.orderedLate.milliseconds) }

    /// Places orders by one statement; returns each, nil where the statement left it out. Where something was bought
    /// before that may pay them, a transaction of its own decides that.
    private func place(_ asked: [AskedOrder]) async throws -> [PlacedOrder?] {
        let waits = Parameter.int8(Self.waits.milliseconds / Int64(ledger.speedup))
        let parameters = asked.parameters + [waits, .int4(Self.openMax), Self.late]
        let rows = try await ledger.retryingCollisions { try await write(Queries.placeOrders, parameters) }
        let payable = Set(try rows.filter { try $0.bool("may_be_paid") }.map { try $0.text("order_id") })
        let states = try await pay(asked.filter { payable.contains($0.id) }.map { ($0.id, $0.requestKey) })
        var placed = Dictionary(try rows.map { (try $0.text("order_id"), $0) }) { first, _ in first }
        return try asked.map { order in
            try placed.removeValue(forKey: order.id).map { row in
                PlacedOrder(
                    id: order.id, key: order.key, appAccountToken: order.accountToken,
                    state: try states[order.id] ?? row.word("state"), expiresAt: try row.instant("expires_at"),
                    isNew: true)
            }
        }
    }

    /// Decides what pays placed orders; returns the states of those that changed. A repeated request decides it again.
    private func pay(_ placed: [(id: String, requestKey: String)]) async throws -> [String: OrderState] {
        guard !placed.isEmpty else { return [:] }
        return try await ledger.changingPollers { transaction in
            try Self.decidePayments(of: placed.map(\.id), in: transaction)
            let rows = try transaction.query(
                Queries.rememberPlaced, .texts(placed.map(\.id)), .texts(placed.map(\.requestKey)))
            return Dictionary(try rows.map { (try $0.text("order_id"), try $0.word("state")) }) { first, _ in first }
        }
    }

    /// Decides anew what pays placed orders and those beside them.
    static func decidePayments(of placed: [String], in transaction: Transaction) throws {
        guard !placed.isEmpty else { return }
        try transaction.query(Queries.lockBuyersOf, .texts(placed))
        let payable = try transaction.query(Queries.lockPayableWith, .texts(placed), late)
        guard !payable.isEmpty, let clock = try transaction.query(Queries.readClock).first else { return }
        let pool = try PaymentPool(of: payable.map { try $0.text("order_id") }, in: transaction)
        try pool.decide(at: clock.timestamptz("recorded_at"), in: transaction)
    }

    /// Returns the order that the same request placed earlier; throws `exists` when the key placed another one.
    private func recall(_ asked: AskedOrder, _ seal: SecretSeal) async throws -> PlacedOrder? {
        let request: [Parameter] = [.text(asked.bundleID.text), .text(asked.requestKey), .bytea(asked.request.digest)]
        guard let row = try await write(Queries.recallOrder, request + [Self.late]).first else { return nil }
        guard try row.bool("is_same") else {
            throw LedgerError(.exists, "This Idempotency-Key placed another order; use a key of its own.")
        }
        let id = try row.text("order_id")
        let states = try await row.bool("may_be_paid") ? pay([(id, asked.requestKey)]) : [:]
        return PlacedOrder(
            id: id, key: try seal.open(try row.bytea("sealed_key"), for: Self.keyOwner(id)),
            appAccountToken: try row.text("app_account_token"), state: try states[id] ?? row.word("state"),
            expiresAt: try row.instant("expires_at"), isNew: false)
    }

    /// Throws the reason why the statement leaves out a new order.
    private func requireRoom(for request: OrderRequest, of bundleID: BundleID) async throws {
        let parameters = [bundleID.text, request.customer, request.productID.text].map { Parameter.text($0) }
        guard let row = try await query(Queries.readRoomForOrder, parameters).first else {
            _ = try await ledger.apps.app(bundleID)
            return
        }
        guard try row.bool("is_known") else {
            throw LedgerError(.invalid, "The catalog of \(bundleID) has no product \(request.productID).")
        }
        guard try row.bool("has_kind") else {
            throw LedgerError(
                .invalid, "The catalog of \(bundleID) does not say what \(request.productID) is; give it a kind.")
        }
        guard try request.quantity == 1 || !row.bool("is_single") else {
            throw LedgerError(
                .invalid,
                "Apple sells one \(request.productID) at a time; order a quantity of 1. Only consumables and non-renewing subscriptions have another one."
            )
        }
        guard try row.int8("open_orders") < Int64(Self.openMax) else {
            throw LedgerError(
                .exhausted(retryAfterSeconds: Int(try row.int8("seconds_left"))),
                "The customer has \(Self.openMax) open orders; cancel one of them first.")
        }
    }

    static func keyOwner(_ id: String) -> String { "order \(id)" }

    private static func require(_ request: OrderRequest, requestKey: String) throws {
        try Upload.requireValidCustomerID(request.customer)
        guard !request.productID.text.unicodeScalars.contains("\0") else {
            throw LedgerError(.invalid, "A product's id cannot hold a NUL.")
        }
        guard OrderRequest.quantityAllowed.contains(request.quantity) else {
            throw LedgerError(.invalid, "A quantity is 1 to 10, as in StoreKit; this one is \(request.quantity).")
        }
        guard (request.priceMilliunits == nil) == (request.currency == nil) else {
            throw LedgerError(.invalid, "A price and its currency go together.")
        }
        if let device = request.device { try OrderRequest.requireValidDevice(device) }
        guard !requestKey.isEmpty, requestKey.utf8.count <= requestKeyBytesMax else {
            throw LedgerError(.invalid, "An Idempotency-Key has 1 to \(requestKeyBytesMax) bytes.")
        }
    }
}

/// An order that is to be placed. Orders that arrive together are placed together.
struct AskedOrder: Sendable {
    let id = UUID().uuidString.lowercased()
    let accountToken = UUID().uuidString.lowercased()
    let key: String
    fileprivate let sealedKey: [UInt8]
    fileprivate let request: OrderRequest
    fileprivate let bundleID: BundleID
    let requestKey: String
    fileprivate let device: [UInt8]?

    /// Makes the order's id, account token and key, and seals the key.
    init(_ request: OrderRequest, of bundleID: BundleID, requestKey: String, seal: SecretSeal) throws {
        (self.request, self.bundleID, self.requestKey) = (request, bundleID, requestKey)
        device = try request.device.map { try seal.hash(device: $0, of: bundleID) }
        key = SymmetricKey(size: .bits256).withUnsafeBytes { Data($0).base64EncodedString() }
        sealedKey = try seal.seal(key, for: LedgerOrders.keyOwner(id))
    }
}

extension [AskedOrder] {
    /// The columns of `place_orders`.
    var parameters: [Parameter] {
        [
            .texts(map(\.bundleID.text)), .texts(map(\.request.customer)), .texts(map(\.request.productID.text)),
            .int4s(map(\.request.quantity)), .int8s(map(\.request.priceMilliunits)), .texts(map(\.request.currency)),
            .byteas(map(\.device)), .texts(map(\.requestKey)), .byteas(map(\.request.digest)), .texts(map(\.id)),
            .texts(map(\.accountToken)), .byteas(map(\.sealedKey)),
        ]
    }
}
