import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// How long after a purchase its order may have been placed: the clocks of a device, of Apple and of this database
    /// differ.
    private static let orderedLate = Delay.seconds(600)

    /// Whether a changed purchase or subscription may pay an order: an answer carries an order's account token, or an
    /// owner has an open order. Most settlements pay none.
    private func mayPay(in transaction: Transaction) throws -> Bool {
        if !orderCustomers.isEmpty { return true }
        let owners =
            purchases.values.filter(\.isChanged).compactMap(\.ownership.current?.customer.number)
            + subscriptions.values.filter(\.isChanged).compactMap(\.ownership.current?.customer.number)
        guard !owners.isEmpty else { return false }
        let rows = try transaction.query(Queries.mayBePaying, [.int8s(Set(owners).sorted())])
        return try rows.first?.bool("is_open") == true
    }

    /// Finds the orders that changed purchases and subscriptions pay, and marks them as paid. It comes after the owners
    /// are written, and before what is delivered.
    func payOrders(in transaction: Transaction) throws {
        let bought = purchases.values.filter(\.isChanged).map(\.rowID)
        let subscribed = subscriptions.values.filter(\.isChanged).map(\.rowID)
        guard try mayPay(in: transaction) else { return }
        let rows = try transaction.query(
            Queries.findPayments, [.int8s(bought), .int8s(subscribed), .int8(Self.orderedLate.milliseconds)])
        guard !rows.isEmpty else { return }
        let payments = try rows.map(Payment.init(row:))
        let chosen = Set(matchPayments(payments.map(\.candidate)))
        let paying = payments.filter { chosen.contains($0.candidate) }
        try transaction.query(
            Queries.payOrders,
            [
                .texts(paying.map(\.candidate.orderID)), .texts(paying.map(\.candidate.cause.rawValue)),
                .texts(paying.map(\.environment)), .texts(paying.map(\.transactionID)),
                .instants(paying.map(\.candidate.purchasedAt)), .int8s(paying.map(\.purchaseID)),
                .int8s(paying.map(\.subscriptionID)), .int8s(paying.map(\.periodID)),
                .timestamptz(microseconds: recordedMicroseconds),
            ])
    }
}

/// A payment candidate with what the order remembers of it.
private struct Payment {
    let candidate: PaymentCandidate
    let environment: String
    let transactionID: String
    let purchaseID: Int64?
    let subscriptionID: Int64?
    let periodID: Int64?

    init(row: Row) throws {
        environment = try row.text("environment")
        transactionID = try row.text("transaction_id")
        purchaseID = try row.int8IfPresent("purchase_id")
        subscriptionID = try row.int8IfPresent("subscription_id")
        periodID = try row.int8IfPresent("period_id")
        let bought: PaymentCandidate.Bought
        if let subscriptionID, let periodID {
            bought = .period(periodID, of: subscriptionID)
        } else {
            bought = .purchase(purchaseID ?? 0)
        }
        candidate = PaymentCandidate(
            orderID: try row.text("order_id"), orderedAt: try row.instant("created_at"),
            cause: try row.bool("by_token") ? .token : .product, bought: bought,
            purchasedAt: try row.instant("purchased_at"))
    }
}
