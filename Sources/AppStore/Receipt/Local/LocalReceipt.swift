/// What a receipt says by itself, read without asking Apple and without checking any signature.
///
/// Anybody can make bytes that read like this. So it may refuse (a receipt that names another app), prioritise (what to
/// ask about first, and which store) and deduplicate (receipts of one subscription). It never grants: only Apple's
/// answer does. Apple may change the format, so a receipt that cannot be read here is still asked about.
package struct LocalReceipt: Sendable, Hashable {
    /// The most bytes read: what `ReceiptData.charactersMax` of Base64 can hold.
    package static let bytesMax = ReceiptData.charactersMax / 4 * 3
    /// The most purchases read. Real receipts hold some hundreds.
    package static let purchasesMax = 10_000

    /// How the receipt is written: PKCS#7 signed data, or an old property list.
    package let form: ReceiptForm
    /// The app that made the receipt, as it says.
    package let bundleID: String?
    /// The receipt's own word, raw: `Production`, `ProductionSandbox`, `ProductionVPP`, `ProductionVPPSandbox` or
    /// `Xcode`; in legacy receipts `Sandbox` or nothing.
    package let environment: String?
    /// When the receipt was made, in milliseconds since 1970; legacy receipts do not say.
    package let createdAt: Int64?
    /// The purchases it holds, in the order they stand, which means nothing.
    package let purchases: [LocalPurchase]
    /// How many attributes and purchases were passed over because they could not be read, or were too many.
    package let unreadableParts: Int

    /// The subscriptions and purchases it speaks of, each once, sorted as text.
    package var originalTransactionIDs: [String] { Set(purchases.map(\.originalTransactionID)).sorted() }

    /// Every transaction it speaks of, each once, sorted as text.
    package var transactionIDs: [String] { Set(purchases.compactMap(\.transactionID)).sorted() }

    /// The latest end of a paid period that was not cancelled, in milliseconds since 1970; nil without any
    /// subscription.
    package var latestExpiry: Int64? { purchases.filter { $0.cancelledAt == nil }.compactMap(\.expiresAt).max() }

    /// The store that made it, which spares the question to the other one; nil when it does not say, or was made by
    /// Xcode.
    package var store: Endpoint? {
        switch environment {
        case "Production", "ProductionVPP": .production
        case "Sandbox", "ProductionSandbox", "ProductionVPPSandbox": .sandbox
        default: nil
        }
    }

    /// Whether it names an app, and that app is not `bundleID`: Apple would vouch for it, but not to us.
    package func isOfAnotherApp(than bundleID: String) -> Bool {
        self.bundleID.map { $0 != bundleID } ?? false
    }
}
