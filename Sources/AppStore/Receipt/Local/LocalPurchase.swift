/// One purchase in a receipt on the device, unchanged: a hint, never a proof.
///
/// The receipt does not learn about later renewals, refunds or upgrades until the device refreshes it.
package struct LocalPurchase: Sendable, Hashable {
    /// The product bought.
    package let productID: String?
    /// One delivery of the purchase; not stable.
    package let transactionID: String?
    /// The subscription or purchase of this entry; the transaction id if missing. Xcode writes `0` for every purchase.
    package let originalTransactionID: String
    /// The billing period; absent on one-time purchases.
    package let webOrderLineItemID: String?
    /// The end of the paid period, in milliseconds since 1970; nil for one-time purchases. Xcode writes the year 4001.
    package let expiresAt: Int64?
    /// The instant at which Apple took it back, in milliseconds since 1970.
    package let cancelledAt: Int64?
}
