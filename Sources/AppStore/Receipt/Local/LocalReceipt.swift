/// The contents of a receipt, read without asking Apple and without checking any signature.
///
/// Bytes that read like this can be forged. The contents may therefore serve to refuse (a receipt that names another
/// app), prioritise (which receipt to ask about first, and at which store) and deduplicate (receipts of one
/// subscription). They never grant access: only Apple's answer does. Apple may change the format, so Apple is still
/// asked about a receipt that cannot be read here.
package struct LocalReceipt: Sendable, Hashable {
    /// The most bytes that are read: the capacity of `ReceiptData.charactersMax` characters of Base64.
    package static let bytesMax = ReceiptData.charactersMax / 4 * 3
    /// The most purchases that are read. Real receipts contain some hundreds.
    package static let purchasesMax = 10_000

    /// The format of the receipt: PKCS#7 signed data, or an old property list.
    package let form: ReceiptForm
    /// The app that made the receipt, as the receipt claims.
    package let bundleID: String?
    /// The receipt's own value, raw: `Production`, `ProductionSandbox`, `ProductionVPP`, `ProductionVPPSandbox` or
    /// `Xcode`; in legacy receipts `Sandbox` or nothing.
    package let environment: String?
    /// The creation of the receipt, in milliseconds since 1970; legacy receipts do not state it.
    package let createdAt: Int64?
    /// The purchases in the receipt, in its order, which has no meaning.
    package let purchases: [LocalPurchase]
    /// The number of attributes and purchases skipped because they could not be read, or were too many.
    package let unreadableParts: Int

    /// The subscriptions and purchases in the receipt, each once, sorted as text.
    package var originalTransactionIDs: [String] { Set(purchases.map(\.originalTransactionID)).sorted() }

    /// Every transaction in the receipt, each once, sorted as text.
    package var transactionIDs: [String] { Set(purchases.compactMap(\.transactionID)).sorted() }

    /// The latest end of a paid period that was not cancelled, in milliseconds since 1970; nil without any
    /// subscription.
    package var latestExpiry: Int64? { purchases.filter { $0.cancelledAt == nil }.compactMap(\.expiresAt).max() }

    /// The store that made the receipt, which saves a request to the other store; nil if the receipt does not state it,
    /// or Xcode made it.
    package var store: Endpoint? {
        switch environment {
        case "Production", "ProductionVPP": .production
        case "Sandbox", "ProductionSandbox", "ProductionVPPSandbox": .sandbox
        default: nil
        }
    }

    /// Returns whether the receipt names an app other than `bundleID`: Apple would vouch for it, but not to us.
    package func isOfAnotherApp(than bundleID: String) -> Bool {
        self.bundleID.map { $0 != bundleID } ?? false
    }
}
