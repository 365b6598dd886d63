import AppStore
import Hummingbird
import JSON
import Subscriptions
import Tracking

/// `POST` and `GET /v1/apps/{bundle}/orders…`, `…/orders/{id}:cancel`, and a customer's orders.
struct OrderRoutes: Sendable {
    /// The default and the largest number of orders of a page.
    static let ordersMax: Int64 = 1_000

    let ledger: SubscriptionLedger
    let apps: KnownApps
    let limits: ServerLimits

    func addRoutes(to routes: KeyedRoutes) {
        routes.ofApp(needing: .write).post("/v1/apps/{bundle}/orders", use: place)
        routes.ofApp(needing: .read).get("/v1/apps/{bundle}/orders/{id}", use: show)
        routes.ofApp(needing: .write).post("/v1/apps/{bundle}/orders/{id}:cancel", use: cancel)
        routes.ofApp(needing: .read, query: ["state", "after", "limit"])
            .get("/v1/apps/{bundle}/customers/{id}/orders", use: list)
    }

    private func place(_ request: Request, _ context: AppContext) async throws -> Response {
        let body = try await limits.json(OrderBody.self, of: request)
        try await apps.require(context.bundleID)
        guard let key = request.headers[.idempotencyKey], !key.isEmpty else {
            throw Problem(
                .invalid, "The header Idempotency-Key is missing; send a UUID, and the same one when you repeat this.")
        }
        let placed = try await ledger.acting(as: .key(context.key.id)).orders.place(
            try body.request, of: context.bundleID, requestKey: key)
        return Response(
            [
                "order_id": .string(placed.id), "key": .string(placed.key),
                "app_account_token": .string(placed.appAccountToken), "state": .string(placed.state.rawValue),
                "expires_at": .string(placed.expiresAt.iso8601),
            ], status: placed.isNew ? .created : .ok)
    }

    private func show(_ request: Request, _ context: AppContext) async throws -> Response {
        try await apps.require(context.bundleID)
        let id = try context.parameters.decoded("id")
        guard let order = try await ledger.orders.read(id, of: context.bundleID) else {
            throw Problem(.notFound, "\(context.bundleID) has no order \(id).")
        }
        return Response(order.json)
    }

    private func cancel(_ request: Request, _ context: AppContext) async throws -> Response {
        _ = try await limits.json(NoFields.self, of: request)
        try await apps.require(context.bundleID)
        let id = try context.parameters.decoded("id")
        let orders = ledger.acting(as: .key(context.key.id)).orders
        return Response(try await orders.cancel(id, of: context.bundleID).json)
    }

    private func list(_ request: Request, _ context: AppContext) async throws -> Response {
        try await apps.require(context.bundleID)
        let limit = try request.number("limit", from: 1, upTo: Self.ordersMax) ?? Self.ordersMax
        let customer = try context.parameters.decoded("id")
        try Upload.requireValidCustomerID(customer)
        let orders = try await ledger.orders.read(
            of: customer, in: context.bundleID,
            state: try request.word("state", OrderState.self), after: try request.uuid("after"),
            limit: Int(limit))
        let next = orders.count == Int(limit) ? orders.last?.id : nil
        return Response(["orders": .array(orders.map(\.json)), "next": .optional(next)])
    }
}

private struct OrderBody: KnownFields {
    let customer: String
    let productID: String
    let quantity: Quantity?
    /// The price that the customer was shown.
    let price: Milliunits?
    /// The currency of that price, ISO 4217.
    let currency: String?
    let device: String?

    struct Quantity: Decodable {
        let count: Int32

        init(from decoder: any Decoder) throws {
            count = try decoder.singleValueContainer().number(in: OrderRequest.quantityAllowed)
        }
    }

    enum CodingKeys: String, CodingKey, CaseIterable {
        case customer
        case productID = "product_id"
        case quantity, price, currency, device
    }

    var request: OrderRequest {
        get throws {
            OrderRequest(
                customer: customer, productID: ProductID(productID), quantity: quantity?.count ?? 1,
                priceMilliunits: price?.count, currency: try currency?.asCurrency(), device: device)
        }
    }
}

extension Order {
    var json: JSONValue {
        [
            "order_id": .string(id),
            "customer": .string(customer),
            "product_id": .string(productID.text),
            "quantity": .integer(Int64(quantity)),
            "environment": .optional(environment?.rawValue),
            "state": .string(state.rawValue),
            "cause": .string(cause),
            "created_at": .string(createdAt.iso8601),
            "expires_at": .string(expiresAt.iso8601),
            "paid_at": .optional(paidAt?.iso8601),
            "transaction_id": .optional(transactionID),
            "delivery_ids": .array(deliveryIDs.map { .string($0) }),
        ]
    }
}

/// `POST /v1/orders/{id}/receipt`: a device sends a receipt for an order. The answer shows what the order is about and
/// nothing else, because the proof does not show that the receipt is the sender's.
/// `POST /v1/orders/{id}/state`: a device reports where its payment is.
struct DeviceRoutes: Sendable {
    let uploads: ReceiptUploads
    let calls: DeviceCalls

    private var orders: LedgerOrders { uploads.tracker.ledger.orders }

    func addRoutes(to routes: some RouterMethods<CallerContext>) {
        routes.post("/v1/orders/{id}/receipt", use: takeReceipt)
        routes.post("/v1/orders/{id}/state", use: takeState)
    }

    private func takeReceipt(_ request: Request, _ context: CallerContext) async throws -> Response {
        let spelling = try context.parameters.decoded("id")
        let id = LedgerOrders.canonical(spelling) ?? spelling
        let body = try await calls.body(OrderReceiptBody.self, of: request, about: id, context) { body in
            let receipt = try ReceiptData(normalising: body.receipt)
            return try await orders.accepts(OrderProof(of: spelling, receipt: receipt.bytes, code: body.proof))
        }
        guard let party = try await orders.party(to: id) else { throw DeviceCalls.refused }
        let submission = Submission(
            bundleID: party.app, customer: nil, receipt: body.receipt, order: OrderReference(id: id, isProved: true))
        let question = UploadQuestion(
            bundleID: party.app, customer: party.customer, purpose: .purchase, orderID: id, transactionID: nil)
        return try response(to: try await uploads.answer(to: submission, asking: question, by: nil))
    }

    private func takeState(_ request: Request, _ context: CallerContext) async throws -> Response {
        let spelling = try context.parameters.decoded("id")
        let id = LedgerOrders.canonical(spelling) ?? spelling
        let body = try await calls.body(StateBody.self, of: request, about: id, context) { body in
            try await orders.accepts(
                OrderProof(of: spelling, state: body.known, stateCode: body.code, code: body.proof))
        }
        let (state, code) = (try body.known, body.code)
        guard let now = try await orders.report(state, code: code, of: spelling, proof: body.proof) else {
            throw DeviceCalls.refused
        }
        return Response(["order_id": .string(id), "state": .string(now.rawValue)])
    }

    private func response(to answer: UploadAnswer) throws -> Response {
        switch answer {
        case .verified(let settled, _, let result):
            let own: [String: JSONValue] = [
                "next_check_at": .optional(settled.nextCheckAt?.iso8601),
                "outcome": .string(settled.outcome.rawValue),
                "receipt_id": .string(settled.receiptID.description),
            ]
            return Response(
                .object(own.merging(result.deviceMembers) { own, _ in own }),
                status: result.word == .absent ? .accepted : .ok)
        // Why there is no verdict is the operator's concern: it may name the app's secrets.
        case .waiting(let receiptID, let outcome, _, let result):
            let own: [String: JSONValue] = [
                "outcome": .string(outcome), "receipt_id": .string(receiptID.description),
                "reason": "The check is pending; send the receipt again after retry_after_s.",
            ]
            return Response(.object(own.merging(result.deviceMembers) { own, _ in own }), status: .accepted)
        case .rejected(let settled, let result): throw Problem(rejecting: settled, result.deviceMembers)
        }
    }
}

extension UploadResult {
    /// The members that a device gets, by name: those of its order, without the customer's name.
    fileprivate var deviceMembers: [String: JSONValue] {
        var own = self
        own.contents = order.map(contents.only(of:)) ?? .none
        var members = own.members
        members["purchases"] = nil
        members["order"] = order.map { $0.json.withoutCustomer } ?? .null
        members["deliveries"] = .array(own.contents.deliveries.map { $0.json.withoutCustomer })
        return members
    }
}

extension JSONValue {
    fileprivate var withoutCustomer: JSONValue {
        guard case .object(var members) = self else { return self }
        members["customer"] = .null
        return .object(members)
    }
}

private struct OrderReceiptBody: KnownFields {
    /// The receipt in Base64, in the form that the device gave.
    let receipt: String
    /// The proof over the decoded receipt.
    let proof: String

    enum CodingKeys: CodingKey, CaseIterable { case receipt, proof }
}

private struct StateBody: KnownFields {
    let state: String
    /// An error code of StoreKit, for example.
    let code: String?
    let proof: String

    /// The reported state. Throws a problem for a word that is none, and for a state that no device reports.
    var known: OrderState {
        get throws {
            switch OrderState(rawValue: state) {
            case .purchasing?: .purchasing
            case .deferred?: .deferred
            case .cancelled?: .cancelled
            case .failed?: .failed
            case .created?, .paid?, .delivered?, .expired?, .refunded?, nil:
                throw Problem(.invalid, "The body's state is purchasing, deferred, cancelled or failed.")
            }
        }
    }

    enum CodingKeys: CodingKey, CaseIterable { case state, code, proof }
}

/// The calls of devices about orders. A device has no API key: a proof made with the order's key shows that a call is
/// about the order. So its body and its rate are limited.
struct DeviceCalls: Sendable {
    static let bodyBytesMax = 1024 * 1024
    /// The calls about one order with its proof: 10 a minute.
    static let orderRate = RequestRate(perSecond: 10.0 / 60, burst: 10)
    /// The failed calls of one address: 60 a minute.
    static let failureRate = RequestRate(perSecond: 1, burst: 60)
    /// The wrong proofs of one address about one order: 600 a minute, many more than devices behind one proxy make.
    static let wrongProofRate = RequestRate(perSecond: 10, burst: 600)
    /// The problem of an unknown order and of a wrong proof: a device learns no more.
    static let refused = Problem(.proofRefused, "No order of this id has a key that makes this proof.")

    let ledger: LedgerOrders
    let limits: ServerLimits
    private let orders = RateLimiter<String>()
    private let failures = RateLimiter<SourceAddress>()
    private let wrongProofs = RateLimiter<WrongProof>()

    /// Whose wrong proofs about what are counted together.
    private struct WrongProof: Hashable {
        let address: SourceAddress
        let order: String
    }

    /// Returns the body of a call about an order that `isProved` accepts. Throws a problem for any other, and for one
    /// call too many.
    ///
    /// Many devices share an address, so only its failures count, and a proved call passes whatever others did: the proof
    /// is checked first. Once an address failed too often, a call about an order that does not exist is refused
    /// before its body is read, and so is one about an order for which it sent 600 wrong proofs within a minute.
    func body<Body: KnownFields>(
        _ type: Body.Type, of request: Request, about order: String, _ context: CallerContext,
        isProved: (Body) async throws -> Bool
    ) async throws -> Body {
        try request.requireQuery(known: [])
        let address = context.source(of: request, behind: limits.trustedProxies)
        let asked = WrongProof(address: address, order: order)
        let body: Body
        do {
            if wrongProofs.isExhausted(asked, at: Self.wrongProofRate) { throw Self.refused }
            if failures.isExhausted(address, at: Self.failureRate), try await ledger.party(to: order) == nil {
                throw Self.refused
            }
            body = try await limits.json(type, of: request)
            guard try await isProved(body) else { throw Self.refused }
        } catch {
            let isCallers = Problem(telling: error).kind.status.kind == .clientError
            if isCallers { _ = wrongProofs.secondsToWait(of: asked, at: Self.wrongProofRate) }
            guard isCallers, let seconds = failures.secondsToWait(of: address, at: Self.failureRate)
            else { throw error }
            throw Problem.tooMany("Too many calls from this address failed.", seconds)
        }
        if let seconds = orders.secondsToWait(of: order, at: Self.orderRate) {
            throw Problem.tooMany("A device calls at most 10 times a minute about an order.", seconds)
        }
        return body
    }
}
