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
    /// How many attributes of the receipt name an app, readable or not.
    package let bundleAttributes: Int
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

    /// Returns the app that the receipt is of where it is certainly another one than `bundleID`: Apple would vouch for it,
    /// but not to us. Nil where Apple has to be asked.
    ///
    /// It is certain only where exactly one attribute names an app and every part can be read: of two, or of one in a
    /// part that this reader does not understand, Apple may believe another one.
    package func otherApp(than bundleID: String) -> String? {
        guard bundleAttributes == 1, unreadableParts == 0, self.bundleID != bundleID else { return nil }
        return self.bundleID
    }
}

/// One purchase in a receipt on the device, unchanged: a hint, never a proof.
///
/// The receipt does not learn about later renewals, refunds or upgrades until the device refreshes it.
package struct LocalPurchase: Sendable, Hashable {
    /// The product bought.
    package let productID: String?
    /// The id of one delivery of the purchase. Another receipt may have another id for the same purchase.
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

/// The outcome of reading a receipt locally: its contents, or the reason it is unreadable. Never an error, because
/// Apple may still judge a receipt that only Apple can read.
package enum LocalReading: Sendable, Hashable {
    /// The receipt's contents.
    case read(LocalReceipt)
    /// The fault, as half a sentence: "a property list without purchase-info".
    case unreadable(String)

    /// Reads decoded receipt bytes, in time that grows with their number. Skips signature and certificates.
    package init(of bytes: [UInt8]) {
        guard bytes.count <= LocalReceipt.bytesMax else {
            self = .unreadable("\(bytes.count) bytes, more than \(LocalReceipt.bytesMax)")
            return
        }
        switch bytes.first {
        case nil: self = .unreadable("no bytes at all")
        case BERElement.sequence: self = UnifiedReceipt.reading(of: bytes)
        default: self = LegacyReceipt.reading(of: bytes)
        }
    }

    /// The receipt's contents; nil if it cannot be read.
    package var receipt: LocalReceipt? {
        switch self {
        case .read(let receipt): receipt
        case .unreadable: nil
        }
    }
}
