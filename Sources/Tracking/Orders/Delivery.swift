import Postgres
import SQL
package import Subscriptions

/// What a purchase or a period gives or takes back, once.
package struct Delivery: Sendable, Hashable {
    package enum State: String, Sendable, CaseIterable {
        /// The operator's service is to carry it out.
        case due
        /// The operator's service carried it out.
        case acknowledged
        /// Nothing is to be done.
        case skipped
    }

    package let id: Int64
    /// Its place in the queue, from 1 without a gap; nil in the moment after its commit.
    package let position: Int64?
    package let customer: String
    package let environment: StoreEnvironment
    package let productID: ProductID
    package let kind: ProductKind
    /// What a consumable adds to.
    package let credit: String?
    /// The units that it adds or takes back.
    package let units: Int64?
    /// Odd turns give, even turns take back.
    package let turn: Int32
    /// Why: purchase, renewal, refund, refund_reversed or transfer.
    package let reason: String
    /// The order that the transaction pays.
    package let orderID: String?
    package let transactionID: TransactionID
    /// Apple's first transaction of the purchase or subscription.
    package let originalTransactionID: OriginalTransactionID
    package let state: State
    package let createdAt: Instant
    /// When it was acknowledged or skipped.
    package let settledAt: Instant?
    /// The API key, person or rule that did it.
    package let settledBy: String?
    package let skipReason: String?

    init(row: Row) throws {
        id = try row.int8("delivery_id")
        position = try row.int8IfPresent("position")
        customer = try row.text("customer")
        environment = try row.word("environment")
        productID = try row.id("product_id")
        kind = try row.word("kind")
        credit = try row.textIfPresent("credit")
        units = try row.int8IfPresent("units")
        turn = try row.int4("turn")
        reason = try row.text("reason")
        orderID = try row.textIfPresent("order_id")
        transactionID = try row.id("transaction_id")
        originalTransactionID = try row.id("original_transaction_id")
        state = try row.word("state")
        createdAt = try row.instant("created_at")
        settledAt = try row.instantIfPresent("settled_at")
        settledBy = try row.textIfPresent("settled_by")
        skipReason = try row.textIfPresent("skip_reason")
    }
}

/// A stretch of the queue of deliveries.
package struct DeliveryListPage: Sendable {
    package let deliveries: [Delivery]
    /// The position to continue after.
    package let next: Int64
    package let more: Bool
}

extension LedgerDeliveries {
    /// The most deliveries that get their positions in one transaction.
    private static let placedMax: Int32 = 10_000

    /// Returns the deliveries of an app after a position, at most `limit`, in a state and of a customer where given.
    ///
    /// Positions are given after the commit, without gaps, so that a reader by position misses none. Reads from the
    /// primary. Throws `unknownApp` for an unknown app, `invalid` for what can be no customer's id.
    package func read(
        of bundleID: BundleID, state: Delivery.State? = nil, customer: String? = nil,
        environment: StoreEnvironment = .production, after position: Int64, limit: Int
    ) async throws -> DeliveryListPage {
        if let customer { try Upload.requireValidCustomerID(customer) }
        let app = try await ledger.apps.app(bundleID)
        try await place()
        var parameters: [Parameter] = [
            .int4(app.id), .text(environment.rawValue), .int8(position), .int4(Int32(clamping: limit)),
        ]
        let statement: SQLFile
        switch (customer, state) {
        case (let customer?, let state):
            statement = Queries.readCustomerDeliveries
            parameters += [.text(state?.rawValue), .text(customer)]
        case (nil, .due):
            statement = Queries.readDueDeliveries
        case (nil, let state):
            statement = Queries.readDeliveries
            parameters += [.text(state?.rawValue)]
        }
        let deliveries = try await query(statement, parameters).map(Delivery.init(row:))
        return DeliveryListPage(
            deliveries: deliveries, next: deliveries.last?.position ?? position, more: deliveries.count == limit)
    }

    /// Returns a delivery of any app, and the app; nil where there is none.
    package func read(_ id: Int64) async throws -> (delivery: Delivery, bundleID: BundleID)? {
        try await query(Queries.readDelivery, .int8(id)).first.map { row in
            (try Delivery(row: row), BundleID(try row.text("bundle_id")))
        }
    }

    /// Gives committed deliveries their positions.
    package func place() async throws {
        while try await query(Queries.isQueueBehind).first?.bool("is_behind") == true {
            try await ledger.retryingCollisions {
                try await database.transaction { transaction in
                    guard try transaction.query(Queries.lockQueue).first?.bool("is_behind") == true else { return }
                    try transaction.query(Queries.placeDeliveries, .int4(Self.placedMax))
                }
            }
        }
    }
}

/// The deliveries of an app that wait for an acknowledgement.
package struct DueDeliveries: Sendable, Hashable {
    /// The most deliveries of an app that are counted.
    package static let countedMax: Int32 = 10_000

    package let bundleID: BundleID
    /// Deliveries that are due; at most `countedMax`.
    package let deliveries: Int64
    /// When the oldest of them became due.
    package let oldestAt: Instant
    /// Seconds for which the oldest of them has been due.
    package let seconds: Double

    /// Whether there may be more than `deliveries`.
    package var isMore: Bool { deliveries >= Int64(Self.countedMax) }
}

extension LedgerDeliveries {
    /// After how many seconds a due delivery is late: the operator's service does not carry it out.
    package static let lateSeconds = 3_600.0

    /// Returns, of each app or of one, what has been due for more than `seconds`. An app with nothing due is left out.
    package func due(
        of bundleID: BundleID? = nil, in environment: StoreEnvironment = .production, forMoreThan seconds: Double = 0
    ) async throws -> [DueDeliveries] {
        try await query(
            Queries.countDueDeliveries, .text(bundleID?.text), .text(environment.rawValue), .float8(seconds),
            .int4(DueDeliveries.countedMax)
        ).map { row in
            DueDeliveries(
                bundleID: try row.id("bundle_id"), deliveries: try row.int8("deliveries"),
                oldestAt: try row.instant("oldest_at"), seconds: try row.float8("seconds"))
        }
    }

    /// The most purchases or subscriptions that one transaction goes through.
    private static let releasedMax: Int32 = 500

    /// Delivers, in one short transaction, what a catalog released of earlier purchases. Returns whether more may be
    /// left. A product that another worker goes through is left to it.
    package func release() async throws -> Bool {
        try await ledger.changingPollers { transaction in
            guard let row = try transaction.query(Queries.takeRelease).first else { return false }
            let (app, product) = (Parameter.int4(try row.int4("app_id")), try row.text("product_id"))
            let limit = Parameter.int4(Self.releasedMax)
            let purchases = try row.int8IfPresent("after_purchase").map { after in
                try transaction.query(Queries.shareReleasedPurchases, app, .text(product), .int8(after), limit)
                    .map { try $0.int8("purchase_id") }
            }
            let subscriptions = try row.int8IfPresent("after_subscription").map { after in
                try transaction.query(Queries.shareReleasedSubscriptions, app, .int8(after), limit)
                    .map { try $0.int8("subscription_id") }
            }
            try transaction.query(Queries.storeTurns, .int8s(purchases ?? []), .int8s(subscriptions ?? []))
            try transaction.query(
                Queries.advanceRelease, app, .text(product), .int8(purchases?.max()), .int8(subscriptions?.max()))
            return true
        }
    }
}
