import Postgres
import SQL
package import Subscriptions

/// What a customer ordered, and what was delivered.
package struct PurchaseHistory: Sendable, Hashable {
    /// An order with the price that the customer was shown, and its log.
    package struct LoggedOrder: Sendable, Hashable {
        /// The order.
        package let order: Order
        /// The price that the customer was shown, in thousandths of the currency's unit.
        package let priceMilliunits: Int64?
        /// The currency of that price.
        package let currency: String?
        /// The order's changes, newest first.
        package let changes: [Change]
    }

    /// One change of an order.
    package struct Change: Sendable, Hashable {
        /// The state from then on.
        package let state: OrderState
        /// What brought the state.
        package let cause: String
        /// What the device reported with it, such as an error code of StoreKit.
        package let code: String?
        /// When it happened.
        package let at: Instant
    }

    /// What acknowledged deliveries gave of a credit, less what they took back.
    package struct Balance: Sendable, Hashable {
        /// What consumables add to.
        package let credit: String
        /// Apple's environment.
        package let environment: StoreEnvironment
        /// The units.
        package let units: Int64
    }

    /// The orders, newest first.
    package let orders: [LoggedOrder]
    /// Whether there are more orders than these.
    package let hasMoreOrders: Bool
    /// The deliveries, newest first.
    package let deliveries: [Delivery]
    /// Whether there are more deliveries than these.
    package let hasMoreDeliveries: Bool
    /// The balances by environment and credit.
    package let balances: [Balance]
}

extension LedgerCustomers {
    /// Returns what a customer ordered and what was delivered, by any of the customer's names: the newest `limit` orders,
    /// changes of each and deliveries. An unknown customer has nothing; throws `notFound` for an unknown app.
    package func purchaseHistory(
        of customer: String, in bundleID: BundleID, limit: Int32
    ) async throws -> PurchaseHistory {
        let app = try await ledger.apps.app(bundleID)
        return try await database.transaction { transaction in
            try transaction.query(Queries.holdSnapshot)
            let people = try transaction.query(Queries.findNamedCustomers, [.int4(app.id), .texts([customer])])
            return try PurchaseHistory(
                of: people.map { try $0.int8("customer_id") }, limit: limit, in: transaction)
        }
    }
}

extension PurchaseHistory {
    /// Reads the newest `limit` orders, changes of each and deliveries of customers.
    init(of customers: [Int64], limit: Int32, in transaction: Transaction) throws {
        // One more of each shows whether there are more.
        let parameters: [Parameter] = [.int8s(customers), .int4(limit + 1)]
        let ordered = try transaction.query(Queries.readNewestOrders, parameters)
        let delivered = try transaction.query(Queries.readNewestDeliveries, parameters)
        let shown = ordered.prefix(Int(limit))
        let logged = try transaction.query(
            Queries.readOrderChanges, [.texts(try shown.map { try $0.text("order_id") }), .int4(limit)])
        let changes = Dictionary(
            grouping: try logged.map { (id: try $0.text("order_id"), change: try Change(row: $0)) }, by: \.id)
        orders = try shown.map { row in
            let order = try Order(row: row)
            return LoggedOrder(
                order: order, priceMilliunits: try row.int8IfPresent("price_milliunits"),
                currency: try row.textIfPresent("currency"), changes: changes[order.id, default: []].map(\.change))
        }
        hasMoreOrders = ordered.count > limit
        deliveries = try delivered.prefix(Int(limit)).map(Delivery.init(row:))
        hasMoreDeliveries = delivered.count > limit
        balances = try transaction.query(Queries.readBalances, [.int8s(customers)]).map(Balance.init(row:))
    }
}

extension PurchaseHistory.Change {
    fileprivate init(row: Row) throws {
        state = try row.word("state")
        cause = try row.text("cause")
        code = try row.textIfPresent("code")
        at = try row.instant("changed_at")
    }
}

extension PurchaseHistory.Balance {
    init(row: Row) throws {
        credit = try row.text("credit")
        environment = try row.word("environment")
        units = try row.int8("units")
    }
}
