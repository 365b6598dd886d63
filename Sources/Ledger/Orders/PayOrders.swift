import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Whether a changed purchase or subscription may pay an order: an answer carries an order's account token, a receipt
    /// was sent for an order, or an owner has an open order. Most settlements pay none.
    private func mayPay(in transaction: Transaction) throws -> Bool {
        if !orderCustomers.isEmpty || !orderReceipts.paying.isEmpty { return true }
        let owners =
            purchases.values.filter(\.isChanged).compactMap(\.ownership.current?.customer.number)
            + subscriptions.values.filter(\.isChanged).compactMap(\.ownership.current?.customer.number)
        guard !owners.isEmpty else { return false }
        let rows = try transaction.query(Queries.mayBePaying, [.int8s(Set(owners).sorted())])
        return try rows.first?.bool("is_open") == true
    }

    /// Finds the orders that changed purchases and subscriptions pay, and those for which a receipt was sent, and marks
    /// them as paid. It comes after the owners are written, and before what is delivered.
    func payOrders(in transaction: Transaction) throws {
        try settleOrderReceipts(in: transaction)
        guard try mayPay(in: transaction) else { return }
        let paying = orderReceipts.paying
        let sent = batch.filter { paying.contains($0.claim.receiptID) }
        let bought = Set(purchases.values.filter(\.isChanged).map(\.rowID))
            .union(sent.flatMap { $0.purchases.compactMap { purchases[$0.key]?.rowID } })
        let subscribed = Set(subscriptions.values.filter(\.isChanged).map(\.rowID))
            .union(sent.flatMap { $0.subscriptionKeys.compactMap { subscriptions[$0]?.rowID } })
        let rows = try transaction.query(
            Queries.findPayments,
            [
                .int8s(bought.sorted()), .int8s(subscribed.sorted()), .int8s(paying.map(\.number)),
                .int8(OrderReceipts.orderedLate.milliseconds),
            ])
        guard !rows.isEmpty else { return }
        let payments = try rows.map(Payment.init(row:))
        let chosen = Set(matchPayments(payments.map(\.candidate)))
        let made = payments.filter { chosen.contains($0.candidate) }
        try transaction.query(
            Queries.payOrders,
            [
                .texts(made.map(\.candidate.orderID)), .texts(made.map(\.candidate.cause.rawValue)),
                .texts(made.map(\.environment)), .texts(made.map(\.transactionID)),
                .instants(made.map(\.candidate.purchasedAt)), .int8s(made.map(\.purchaseID)),
                .int8s(made.map(\.subscriptionID)), .int8s(made.map(\.periodID)),
                .timestamptz(microseconds: recordedMicroseconds),
            ])
    }

    /// Marks the receipts of verified answers as settled for the orders that they were sent for.
    private func settleOrderReceipts(in transaction: Transaction) throws {
        let settled = batch.filter { $0.evidence != nil }.map(\.claim.receiptID)
        let sent = orderReceipts.all.filter(settled.contains)
        guard !sent.isEmpty else { return }
        try transaction.query(Queries.settleOrderReceipts, [.int8s(sent.map(\.number))])
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
            cause: try row.word("cause"), bought: bought,
            purchasedAt: try row.instant("purchased_at"))
    }
}
