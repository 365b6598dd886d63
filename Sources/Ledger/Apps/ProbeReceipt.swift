import SQL
import Subscriptions

/// A receipt that reveals, by Apple's answer, whether an app's shared secret is right.
package struct ProbeReceipt: Sendable {
    /// The receipt.
    package let receiptID: ReceiptID
    /// The environment in which Apple verified it.
    package let environment: StoreEnvironment?
    /// The bytes to send to Apple.
    package let receipt: [UInt8]
}

extension SubscriptionLedger {
    /// Returns receipts to test an app's shared secret with, at most `limit`: verified receipts that contain
    /// subscriptions, since Apple checks the secret only for those.
    package func tellingReceipts(of app: App, limit: Int) async throws -> [ProbeReceipt] {
        try await query(Queries.findProbeReceipts, [.int4(app.id), .int4(Int32(clamping: limit))]).map { row in
            ProbeReceipt(
                receiptID: ReceiptID(try row.int8("receipt_id")), environment: try row.wordIfPresent("environment"),
                receipt: try row.bytea("data"))
        }
    }
}
