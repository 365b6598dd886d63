/// One purchase in a receipt on the device, as it stands there: a hint, never a proof.
///
/// The receipt learns nothing of later renewals, refunds or upgrades until the device refreshes it.
package struct LocalPurchase: Sendable, Hashable {
    /// What was bought.
    package let productID: String?
    /// One delivery of the purchase; not stable.
    package let transactionID: String?
    /// The subscription or purchase this belongs to; the transaction id when missing. Xcode writes `0` into all of
    /// them.
    package let originalTransactionID: String
    /// The billing period; absent on one-time purchases.
    package let webOrderLineItemID: String?
    /// End of the paid period, in milliseconds since 1970; nil for one-time purchases. Xcode writes the year 4001.
    package let expiresAt: Int64?
    /// When Apple took it back, in milliseconds since 1970.
    package let cancelledAt: Int64?
}
