import Postgres
import SQL
package import Subscriptions

/// Which deliveries to read.
package struct DeliveryFilter: Sendable, Hashable {
    /// The state; nil: any.
    package var state: Delivery.State?
    /// The operator's own id of the customer; nil: all customers.
    package var customer: String?
    /// Apple's environment.
    package var environment: StoreEnvironment

    /// Creates a filter.
    package init(
        state: Delivery.State? = nil, customer: String? = nil, environment: StoreEnvironment = .production
    ) {
        (self.state, self.customer, self.environment) = (state, customer, environment)
    }
}

/// A stretch of the queue of deliveries.
package struct DeliveryPage: Sendable {
    /// The deliveries in order.
    package let deliveries: [Delivery]
    /// The position to continue after.
    package let next: Int64
    /// Whether there may be more.
    package let more: Bool
}

extension LedgerDeliveries {
    /// The most deliveries that get their positions in one transaction.
    private static let placedMax: Int32 = 10_000

    /// Returns the deliveries of an app after a position, at most `limit`.
    ///
    /// Positions are given after the commit, without gaps, so that a reader by position misses none. Reads from the
    /// primary. Throws `notFound` for an unknown app, `invalid` for what can be no customer's id.
    package func read(
        of bundleID: BundleID, _ filter: DeliveryFilter, after position: Int64, limit: Int
    ) async throws -> DeliveryPage {
        if let customer = filter.customer { try Upload.requireValidCustomerID(customer) }
        let app = try await ledger.apps.app(bundleID)
        try await place()
        var parameters: [Parameter] = [
            .int4(app.id), .text(filter.environment.rawValue), .int8(position), .int4(Int32(clamping: limit)),
        ]
        let statement: SQLFile
        switch (filter.customer, filter.state) {
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
        return DeliveryPage(
            deliveries: deliveries, next: deliveries.last?.position ?? position, more: deliveries.count == limit)
    }

    /// Returns a delivery of any app, and the app; nil where there is none.
    package func read(_ id: Int64) async throws -> (delivery: Delivery, bundleID: BundleID)? {
        try await query(Queries.readDelivery, [.int8(id)]).first.map { row in
            (try Delivery(row: row), BundleID(try row.text("bundle_id")))
        }
    }

    /// Gives committed deliveries their positions.
    package func place() async throws {
        while try await query(Queries.isQueueBehind).first?.bool("is_behind") == true {
            try await ledger.retryingCollisions {
                try await database.transaction { transaction in
                    guard try transaction.query(Queries.lockQueue).first?.bool("is_behind") == true else { return }
                    try transaction.query(Queries.placeDeliveries, [.int4(Self.placedMax)])
                }
            }
        }
    }
}
