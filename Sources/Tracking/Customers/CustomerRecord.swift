import Postgres
import SQL
package import Subscriptions

/// Everything that one customer has, as known now.
package struct CustomerRecord: Sendable {
    package let subscriptions: [OwnedSubscription]
    package let purchases: [OwnedPurchase]
    /// What acknowledged deliveries of consumables gave, less what they took back.
    package let balances: [PurchaseHistory.Balance]
    /// The past, present and expected states of those subscriptions, unless something changes.
    package let timeline: [TimelineSpan]
    /// The number of the customer's receipts that Apple never vouched for.
    package let unverifiedReceipts: Int64
    /// Until when the operator's word counts for those receipts; nil when there is none.
    package let provisionalUntil: Instant?

    /// The most subscriptions, and the most purchases, in a record.
    package static let thingsMax: Int32 = 200
    /// The most spans in a record; older ones are left out.
    package static let spansMax: Int32 = 1000
}

/// A subscription in its owner's record; the words are those of `perennial.subscription_now`.
package struct OwnedSubscription: Sendable {
    package let environment: StoreEnvironment
    /// Apple's id of it.
    package let id: OriginalTransactionID
    /// The subscription group, where Apple reports it.
    package let group: String?
    /// The product of the running or last period.
    package let productID: ProductID
    package let state: String
    package let reason: String?
    package let entitled: Bool
    /// Apple's expiry of the newest period.
    package let expiresAt: Instant?
    /// When access ends unless something changes; nil without access.
    package let entitledUntil: Instant?
    /// Whether the customer wants it to renew; nil when Apple does not say.
    package let willRenew: Bool?
    package let renewsTo: ProductID?
    /// Trial, offers and the like, sorted.
    package let flags: [String]
    package let periods: Int
    package let startedAt: Instant?
    /// Whether Apple will try the next payment; nil when it does not say.
    package let nextPayment: Bool?
    /// How the newest period is paid: the payment of the term that runs, and the seats of a group.
    package let sale: SaleStanding
    /// Apple's clock of the evidence.
    package let asOf: Instant?
    /// When the last verified answer came.
    package let checkedAt: Instant?

    init(row: Row) throws {
        environment = try row.word("environment")
        id = try row.id("original_transaction_id")
        group = try row.textIfPresent("subscription_group_identifier")
        productID = try row.id("product_id")
        state = try row.text("state")
        reason = try row.textIfPresent("reason")
        entitled = try row.bool("entitled")
        expiresAt = try row.instantIfPresent("expires_at")
        entitledUntil = try row.instantIfPresent("entitled_until")
        willRenew = try row.boolIfPresent("will_renew")
        renewsTo = try row.idIfPresent("renews_to_product_id")
        flags = try row.texts("flags")
        periods = Int(try row.int4("periods"))
        startedAt = try row.instantIfPresent("started_at")
        nextPayment = try row.boolIfPresent("next_payment")
        sale = SaleStanding(
            plan: try row.textIfPresent("plan"), paymentNumber: try row.intIfPresent("payment_number"),
            payments: try row.intIfPresent("payments"), termEndsAt: try row.instantIfPresent("commitment_ends_at"),
            seats: try row.intIfPresent("seats"))
        asOf = try row.instantIfPresent("as_of")
        checkedAt = try row.instantIfPresent("checked_at")
    }
}

/// A one-time purchase in its owner's record.
package struct OwnedPurchase: Sendable {
    package let environment: StoreEnvironment
    package let transactionID: String
    /// Apple's id of the first transaction of the purchase.
    package let originalTransactionID: OriginalTransactionID
    package let productID: ProductID
    package let quantity: Int
    package let purchasedAt: Instant
    package let revokedAt: Instant?

    init(row: Row) throws {
        environment = try row.word("environment")
        transactionID = try row.text("transaction_id")
        originalTransactionID = try row.id("original_transaction_id")
        productID = try row.id("product_id")
        quantity = Int(try row.int4("quantity"))
        purchasedAt = try row.instant("purchased_at")
        revokedAt = try row.instantIfPresent("revoked_at")
    }
}

/// One span of a subscription's timeline.
package struct TimelineSpan: Sendable {
    package let environment: StoreEnvironment
    package let id: OriginalTransactionID
    /// When it begins; nil when it has no beginning.
    package let from: Instant?
    /// When it ends; nil when it has no end.
    package let until: Instant?
    package let state: String
    package let reason: String?
    package let entitled: Bool
    package let productID: ProductID
    /// Until when access goes on after its end if Apple cannot be asked; nil without such an outage allowance.
    package let allowedUntil: Instant?

    init(row: Row) throws {
        environment = try row.word("environment")
        id = try row.id("original_transaction_id")
        from = try row.instantIfPresent("valid_from")
        until = try row.instantIfPresent("valid_until")
        state = try row.text("state")
        reason = try row.textIfPresent("reason")
        entitled = try row.bool("entitled")
        productID = try row.id("product_id")
        allowedUntil = try row.instantIfPresent("allowed_until")
    }
}

extension LedgerCustomers {
    /// Returns everything that a customer has; an unknown customer has nothing.
    package func record(of customer: String, app bundleID: BundleID) async throws -> CustomerRecord {
        let whose: [Parameter] = [.text(bundleID.text), .text(customer)]
        let limit = [Parameter.int4(CustomerRecord.thingsMax)]
        async let subscriptions = reads.query(Queries.customerSubscriptions, whose + limit)
        async let purchases = reads.query(Queries.customerPurchases, whose + limit)
        async let spans = reads.query(Queries.customerTimeline, whose + [.int4(CustomerRecord.spansMax)])
        async let balances = reads.query(Queries.customerBalances, whose)
        async let unverified = reads.query(Queries.customerUnverified, whose)
        let waiting = try await unverified.first
        return CustomerRecord(
            subscriptions: try await subscriptions.map(OwnedSubscription.init(row:)),
            purchases: try await purchases.map(OwnedPurchase.init(row:)),
            balances: try await balances.map(PurchaseHistory.Balance.init(row:)),
            timeline: try await spans.map(TimelineSpan.init(row:)),
            unverifiedReceipts: try waiting?.int8("receipts") ?? 0,
            provisionalUntil: try waiting?.instantIfPresent("provisional_until"))
    }
}

/// What a customer ordered, and what was delivered.
package struct PurchaseHistory: Sendable, Hashable {
    /// An order with the price that the customer was shown, and its log.
    package struct LoggedOrder: Sendable, Hashable {
        package let order: Order
        /// The price that the customer was shown, in thousandths of the currency's unit.
        package let priceMilliunits: Int64?
        package let currency: String?
        /// The order's changes, newest first.
        package let changes: [Change]
    }

    package struct Change: Sendable, Hashable {
        /// The state from then on.
        package let state: OrderState
        package let cause: String
        /// What the device reported with it, such as an error code of StoreKit.
        package let code: String?
        package let at: Instant

        init(row: Row) throws {
            state = try row.word("state")
            cause = try row.text("cause")
            code = try row.textIfPresent("code")
            at = try row.instant("changed_at")
        }
    }

    /// What acknowledged deliveries gave of a credit, less what they took back.
    package struct Balance: Sendable, Hashable {
        /// What consumables add to.
        package let credit: String
        package let environment: StoreEnvironment
        package let units: Int64
    }

    /// The orders, newest first.
    package let orders: [LoggedOrder]
    package let hasMoreOrders: Bool
    /// The deliveries, newest first.
    package let deliveries: [Delivery]
    package let hasMoreDeliveries: Bool
    /// The balances by environment and credit.
    package let balances: [Balance]

    /// Reads the newest `limit` orders, changes of each and deliveries of customers.
    init(of customers: [Int64], limit: Int32, in transaction: Transaction) throws {
        // One more of each shows whether there are more.
        let parameters: [Parameter] = [.int8s(customers), .int4(limit + 1)]
        let ordered = try transaction.query(Queries.readNewestOrders, parameters)
        let delivered = try transaction.query(Queries.readNewestDeliveries, parameters)
        let shown = ordered.prefix(Int(limit))
        let logged = try transaction.query(
            Queries.readOrderChanges, .texts(try shown.map { try $0.text("order_id") }), .int4(limit))
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
        balances = try transaction.query(Queries.readBalances, .int8s(customers)).map(Balance.init(row:))
    }
}

extension LedgerCustomers {
    /// Returns what a customer ordered and what was delivered, by any of the customer's names: the newest `limit` orders,
    /// changes of each and deliveries. An unknown customer has nothing; throws `unknownApp` for an unknown app.
    package func purchaseHistory(
        of customer: String, in bundleID: BundleID, limit: Int32
    ) async throws -> PurchaseHistory {
        let app = try await ledger.apps.app(bundleID)
        return try await database.transaction { transaction in
            try transaction.query(Queries.holdSnapshot)
            let people = try transaction.query(Queries.findNamedCustomers, .int4(app.id), .texts([customer]))
            return try PurchaseHistory(of: people.map { try $0.int8("customer_id") }, limit: limit, in: transaction)
        }
    }
}

extension PurchaseHistory.Balance {
    init(row: Row) throws {
        credit = try row.text("credit")
        environment = try row.word("environment")
        units = try row.int8("units")
    }
}
