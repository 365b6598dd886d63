import Postgres
import SQL
package import Subscriptions

extension LedgerOrders {
    /// Returns an order of an app, and of a customer by any name if given; nil where there is no such order. Throws
    /// `notFound` for an unknown app.
    package func read(
        _ id: String, of bundleID: BundleID, orderedBy customer: String? = nil
    ) async throws -> Order? {
        if let id = Self.canonical(id) {
            let rows = try await query(Queries.readOrder, [.text(bundleID.text), .text(id), .text(customer)])
            if let row = rows.first { return try Order(row: row) }
        }
        _ = try await ledger.apps.app(bundleID)
        return nil
    }

    /// Returns the app and the customer of an order that was proved; nil where there is no such order.
    package func party(to id: String) async throws -> (app: BundleID, customer: String)? {
        guard let id = Self.canonical(id) else { return nil }
        return try await query(Queries.findOrder, [.text(id)]).first.map { row in
            (app: BundleID(try row.text("bundle_id")), customer: try row.text("customer"))
        }
    }

    /// Returns the orders of a customer, by any name, oldest first: those after the order `after`, at most `limit`.
    ///
    /// Throws `notFound` for an unknown app, `invalid` for an `after` that is no order's id.
    package func read(
        of customer: String, in bundleID: BundleID, state: OrderState? = nil, after: String? = nil, limit: Int
    ) async throws -> [Order] {
        let app = try await ledger.apps.app(bundleID)
        guard after.map({ Self.canonical($0) != nil }) ?? true else {
            throw LedgerError(.invalid, "after is the id of the last order that was read.")
        }
        return try await query(
            Queries.readCustomerOrders,
            [
                .int4(app.id), .text(customer), .text(state?.rawValue), .text(after), .int4(Int32(clamping: limit)),
            ]
        ).map(Order.init(row:))
    }

    /// Cancels an order of an app: its customer is not asked to pay any more. A payment that comes after all still pays it,
    /// by its token or a receipt that was sent for it. What has ended stays as it is.
    ///
    /// Throws `notFound` where the app has no such order, `exists` where it is paid.
    package func cancel(_ id: String, of bundleID: BundleID) async throws -> Order {
        let app = try await ledger.apps.app(bundleID)
        if let id = Self.canonical(id) {
            _ = try await write(
                Queries.cancelOrder, [.int4(app.id), .text(id)], audited: .orderCancelled, app: bundleID,
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
