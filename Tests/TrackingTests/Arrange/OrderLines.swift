import Crypto
import Foundation
import Testing

@testable import Subscriptions
@testable import Tracking

/// A customer's request for coins.
func orderRequest(_ product: ProductID = "coins", by customer: String = "ann") -> OrderRequest {
    OrderRequest(customer: customer, productID: product)
}

extension PlacedOrder {
    /// The proof of a message about the order.
    func proof(of message: String) throws -> String {
        let key = SymmetricKey(data: try #require(Data(base64Encoded: key)))
        return HMAC<SHA256>.authenticationCode(for: Data(message.utf8), using: key)
            .map { String(format: "%02x", $0) }.joined()
    }
}

extension Finding {
    /// The same, with an account token in the first row.
    func carrying(_ token: String) -> Finding {
        guard case .verified(var evidence) = self else { return self }
        evidence.transactions[0].appAccountToken = token
        return .verified(evidence)
    }
}

extension TestLedger {
    /// Places an order with a key of its own, as long ago as `days`.
    func place(
        _ product: ProductID = "coins", by customer: String = "ann", days: Double = -3
    ) async throws -> PlacedOrder {
        let placed = try await (try sealed).orders.place(
            orderRequest(product, by: customer), of: app.bundleID, requestKey: UUID().uuidString)
        try await run(
            "UPDATE ledger.purchase_order SET created_at = '\(at(days).iso8601)' WHERE order_id = '\(placed.id)'")
        return placed
    }

    /// The changes of an order, each with its cause.
    func log(of order: PlacedOrder) async throws -> String {
        try await text(
            """
            SELECT string_agg(state || ' ' || cause, ', ' ORDER BY at) FROM perennial.order_log
            WHERE order_id = '\(order.id)'
            """)
    }

    /// A receipt is sent for an order: by a device with a proof, or by a service that names the customer.
    func send(
        _ receipt: String, for order: PlacedOrder, by customer: String? = nil, naming transaction: TransactionID? = nil
    ) async throws -> ReceiptID {
        let upload = Upload(
            appID: app.id, customer: customer, receipt: Array(receipt.utf8), imported: false,
            order: OrderReference(id: order.id, isProved: customer == nil, transactionID: transaction))
        return try #require(try await ledger.intake.store([upload], newReceiptsMax: 10).first).receiptID
    }

    /// What Apple says of one-time purchases: id and product, each bought some days from now.
    func bought(at days: [(id: String, days: Double)], asOf: Double = -1) -> Finding {
        var evidence = Evidence(
            environment: .production, bundleID: "com.example.app", asOf: at(asOf), transactions: [])
        for one in days {
            guard case .verified(let said) = bought([(one.id, "coins")], days: one.days, asOf: asOf) else { continue }
            evidence.transactions += said.transactions
        }
        return .verified(evidence)
    }

    /// What Apple says of one-time purchases: id and product, bought `days` from now.
    func bought(_ purchases: [(id: String, product: ProductID)], days: Double = -2, asOf: Double = -1) -> Finding {
        .verified(
            Evidence(
                environment: .production, bundleID: "com.example.app", asOf: at(asOf),
                transactions: purchases.map { one in
                    TransactionRow(
                        path: "latest_receipt_info[0]", source: .latestReceiptInfo, asOf: at(asOf),
                        transactionID: TransactionID(one.id), originalTransactionID: OriginalTransactionID(one.id),
                        productID: one.product, quantity: 1, purchasedAt: at(days))
                }))
    }

    /// The owners of the one-time purchases, by transaction; `-` is no owner.
    func owners() async throws -> String {
        try await text(
            """
            SELECT string_agg(transaction_id || ' ' || COALESCE(customer, '-'), ', ' ORDER BY transaction_id)
            FROM perennial.purchase_now
            """)
    }
}
