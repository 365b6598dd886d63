import SQL
import Subscriptions

/// A receipt whose answer tells whether an app's shared secret is right.
package struct TellingReceipt: Sendable {
    /// The receipt.
    package let receiptID: ReceiptID
    /// Where Apple vouched for it.
    package let environment: StoreEnvironment?
    /// The bytes to send to Apple.
    package let receipt: [UInt8]
}

extension SubscriptionLedger {
    /// Receipts of an app to try a shared secret on, at most `limit`: Apple looks at the secret of those with subscriptions.
    package func tellingReceipts(of app: App, limit: Int) async throws -> [TellingReceipt] {
        try await query(Queries.findTellers, [.int4(app.id), .int4(Int32(clamping: limit))]).map { row in
            TellingReceipt(
                receiptID: ReceiptID(try row.int8("receipt_id")), environment: try row.wordIfPresent("environment"),
                receipt: try row.bytea("data"))
        }
    }
}
