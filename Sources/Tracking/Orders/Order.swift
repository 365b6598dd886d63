import Postgres
import SQL
package import Subscriptions

/// What a customer is about to buy, or bought.
package struct Order: Sendable, Hashable {
    package let id: String
    /// The operator's own id of the customer, as its name means now.
    package let customer: String
    package let productID: ProductID
    package let quantity: Int32
    /// Apple's environment; nil until it is paid.
    package let environment: StoreEnvironment?
    package let state: OrderState
    package let cause: String
    package let createdAt: Instant
    package let expiresAt: Instant
    /// Apple's date of the transaction that pays it.
    package let paidAt: Instant?
    /// Apple's transaction that pays it.
    package let transactionID: String?
    /// What it gives and took back.
    package let deliveryIDs: [String]

    init(row: Row) throws {
        id = try row.text("order_id")
        customer = try row.text("customer")
        productID = try row.id("product_id")
        quantity = try row.int4("quantity")
        environment = try row.wordIfPresent("environment")
        state = try row.word("state")
        cause = try row.text("cause")
        createdAt = try row.instant("created_at")
        expiresAt = try row.instant("expires_at")
        paidAt = try row.instantIfPresent("paid_at")
        transactionID = try row.textIfPresent("transaction_id")
        deliveryIDs = try row.texts("delivery_ids")
    }
}

extension LedgerOrders {
    /// Returns an order of an app, and of a customer by any name if given; throws `unknownApp` for an unknown app.
    package func read(_ id: String, of bundleID: BundleID, orderedBy customer: String? = nil) async throws -> Order? {
        if let id = Self.canonical(id) {
            let rows = try await query(Queries.readOrder, .text(bundleID.text), .text(id), .text(customer))
            if let row = rows.first { return try Order(row: row) }
        }
        _ = try await ledger.apps.app(bundleID)
        return nil
    }

    /// Returns the app and the customer of an order that was proved; nil where there is no such order.
    package func party(to id: String) async throws -> (app: BundleID, customer: String)? {
        guard let id = Self.canonical(id) else { return nil }
        return try await query(Queries.findOrder, .text(id)).first.map { row in
            (app: try row.id("bundle_id"), customer: try row.text("customer"))
        }
    }

    /// Returns the orders of a customer, by any name, oldest first: those after the order `after`, at most `limit`. Throws
    /// `unknownApp` for an unknown app, `invalid` for an `after` that is no order's id.
    package func read(
        of customer: String, in bundleID: BundleID, state: OrderState? = nil, after: String? = nil, limit: Int
    ) async throws -> [Order] {
        let app = try await ledger.apps.app(bundleID)
        guard after.map({ Self.canonical($0) != nil }) ?? true else {
            throw LedgerError(.invalid, "after is the id of the last order that was read.")
        }
        return try await query(
            Queries.readCustomerOrders, .int4(app.id), .text(customer), .text(state?.rawValue), .text(after),
            .int4(Int32(clamping: limit))
        ).map(Order.init(row:))
    }

    /// Cancels an order: its customer is not asked to pay any more. A payment that comes after all, by its token or a
    /// receipt sent for it, still pays it. Throws `notFound` where there is no such order, `exists` where it is paid.
    package func cancel(_ id: String, of bundleID: BundleID) async throws -> Order {
        let app = try await ledger.apps.app(bundleID)
        if let id = Self.canonical(id) {
            _ = try await write(
                Queries.cancelOrder, .int4(app.id), .text(id), audited: .orderCancelled, app: bundleID,
                detail: ["order_id": id])
        }
        guard let order = try await read(id, of: bundleID) else {
            throw LedgerError(.notFound, "\(bundleID) has no order \(id).")
        }
        switch order.state {
        case .cancelled, .expired: return order
        case .created, .purchasing, .deferred, .failed, .paid, .delivered, .refunded:
            throw LedgerError(.exists, "Order \(id) is \(order.state.rawValue), so it cannot be cancelled.")
        }
    }
}

/// The customers whom account tokens name: by an order, else by their own id. Such a token decides who owns what carries it.
struct OrderCustomers: Sendable {
    struct Named: Sendable {
        let claimant: Claimant
        /// Whether the token is of an order of the customer.
        let isOrdered: Bool
    }

    private struct Token: Hashable {
        let appID: Int32
        let text: String
    }

    /// The longest token that is looked up, in bytes: a customer id has up to 255 characters.
    private static let tokenBytesMax = 255

    private var named: [Token: Named] = [:]
    private var erased: Set<Token> = []

    static let none = OrderCustomers()

    private init() {}

    /// Finds the customers whom tokens name: those in a batch's answers, and those stored of the same purchases.
    init(
        of batch: [Settlement], _ subscriptions: some Sequence<SubscriptionDraft>,
        _ purchases: some Sequence<PurchaseDraft>, in transaction: Transaction
    ) throws {
        let said = batch.flatMap { Self.tokens(in: $0.evidence?.transactions ?? [], appID: $0.claim.app.id) }
        let stored = subscriptions.flatMap { draft in
            (draft.state?.facts.periods ?? []).compactMap { period in
                period.details.appAccountToken.flatMap { Self.token($0.value, appID: draft.key.appID) }
            }
        }
        let bought = purchases.compactMap { draft in
            draft.state?.facts.appAccountToken.flatMap { Self.token($0.value, appID: draft.key.appID) }
        }
        try self.init(Set(said + stored + bought), in: transaction)
    }

    private init(_ tokens: Set<Token>, in transaction: Transaction) throws {
        guard !tokens.isEmpty else { return }
        let rows = try transaction.query(
            Queries.findOrderCustomers, .int4s(tokens.map(\.appID)), .texts(tokens.map(\.text)))
        for row in rows {
            let token = Token(appID: try row.int4("app_id"), text: try row.text("token"))
            if try row.bool("is_erased") {
                erased.insert(token)
            } else {
                named[token] = Named(claimant: try Claimant(ofOrder: row), isOrdered: try row.bool("is_ordered"))
            }
        }
    }

    private static func tokens(in rows: [TransactionRow], appID: Int32) -> [Token] {
        rows.compactMap { row in row.appAccountToken.flatMap { token($0, appID: appID) } }
    }

    private static func token(_ text: String, appID: Int32) -> Token? {
        text.utf8.count <= tokenBytesMax ? Token(appID: appID, text: text.lowercased()) : nil
    }

    /// Finds the customers whom the tokens of rows name.
    init(of rows: [(appID: Int32, rows: [TransactionRow])], in transaction: Transaction) throws {
        try self.init(Set(rows.flatMap { Self.tokens(in: $0.rows, appID: $0.appID) }), in: transaction)
    }

    /// Returns rows without the account tokens of erased customers, which must not be stored again.
    func withoutErased(_ rows: [TransactionRow], appID: Int32) -> [TransactionRow] {
        guard !erased.isEmpty else { return rows }
        return rows.map { row in
            guard let token = row.appAccountToken.flatMap({ Self.token($0, appID: appID) }), erased.contains(token)
            else { return row }
            var row = row
            row.appAccountToken = nil
            return row
        }
    }

    /// Returns the same answer without the account tokens of erased customers, and then without its body, which has them too.
    func withoutErased(_ settlement: Settlement) -> Settlement {
        guard var evidence = settlement.evidence else { return settlement }
        let rows = withoutErased(evidence.transactions, appID: settlement.claim.app.id)
        guard rows != evidence.transactions else { return settlement }
        evidence.transactions = rows
        return settlement.saying(evidence)
    }

    var isEmpty: Bool { named.isEmpty }

    var nameOrders: Bool { named.values.contains(where: \.isOrdered) }

    /// Returns the customer whom a token names; nil where it names none.
    func named(by token: String?, appID: Int32) -> Named? {
        token.flatMap { Self.token($0, appID: appID) }.flatMap { named[$0] }
    }
}

extension Claimant {
    init(ofOrder row: Row) throws {
        self.init(
            customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"), imported: false,
            isNew: false)
    }
}

extension OrderCustomers.Named {
    /// Whether the customer takes from an owner what an upload brings: a manual assignment only by an upload of their own.
    func takes(from owner: Owner, at upload: Claimant) -> Bool {
        owner.customer != claimant.customer && (upload.customer == claimant.customer || owner.cause != .assignment)
    }
}

extension LedgerOrders {
    /// The most orders that one statement expires, and the most requests that it forgets.
    private static let expiredMax: Int32 = 1_000

    /// Expires open orders whose time is over, and forgets old Idempotency-Keys; returns whether more may be left.
    @discardableResult
    package func expire() async throws -> Bool {
        let expired = try await write(Queries.expireOrders, .int4(Self.expiredMax))
        _ = try await write(Queries.forgetOrderRequests, .int4(Self.expiredMax))
        _ = try await write(Queries.forgetGrantRequests, .int4(Self.expiredMax))
        return expired.count == Int(Self.expiredMax)
    }
}
