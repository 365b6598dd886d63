import JSON
package import Subscriptions

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
    package internal(set) var bundleID: String?
    /// How many attributes of the receipt name an app, readable or not.
    var bundleAttributes = 0
    /// The receipt's own value, raw: `Production`, `ProductionSandbox`, `ProductionVPP`, `ProductionVPPSandbox` or
    /// `Xcode`; in legacy receipts `Sandbox` or nothing.
    package internal(set) var environment: String?
    /// The creation of the receipt, in milliseconds since 1970; legacy receipts do not state it.
    package internal(set) var createdAt: Int64?
    /// The purchases in the receipt, in its order, which has no meaning.
    package internal(set) var purchases: [LocalPurchase] = []
    /// The number of attributes and purchases skipped because they could not be read, or were too many.
    var unreadableParts = 0

    /// Every transaction in the receipt, each once, sorted as text.
    package var transactionIDs: [String] { Set(purchases.compactMap(\.transactionID)).sorted() }

    /// The latest end of a paid period that was not cancelled, in milliseconds since 1970; nil without a subscription.
    package var latestExpiry: Int64? { purchases.filter { $0.cancelledAt == nil }.compactMap(\.expiresAt).max() }

    /// The store that made the receipt, to be asked first; nil if the receipt does not state it, or Xcode made it.
    package var store: StoreEnvironment? {
        switch environment {
        case "Production", "ProductionVPP": .production
        case "Sandbox", "ProductionSandbox", "ProductionVPPSandbox": .sandbox
        default: nil
        }
    }

    /// Returns the app that the receipt is of where it is certainly another one than `bundleID`, so that Apple would
    /// vouch for it, but not to us; nil where Apple has to be asked. It is certain only where one attribute names an
    /// app and every part can be read: of two, or of one in an unreadable part, Apple may believe another one.
    package func otherApp(than bundleID: String) -> String? {
        guard bundleAttributes == 1, unreadableParts == 0, self.bundleID != bundleID else { return nil }
        return self.bundleID
    }
}

/// One purchase in a receipt on the device, unchanged: a hint, never a proof. The receipt does not learn about later
/// renewals, refunds or upgrades until the device refreshes it.
package struct LocalPurchase: Sendable, Hashable {
    package internal(set) var productID: String?
    /// The id of one delivery of the purchase. Another receipt may have another id for the same purchase.
    package internal(set) var transactionID: String?
    /// The subscription or purchase of this entry; the transaction id if missing. Xcode writes `0` for every purchase.
    package internal(set) var originalTransactionID: String
    /// The billing period; absent on one-time purchases.
    package internal(set) var webOrderLineItemID: String?
    /// The end of the paid period, in milliseconds since 1970; nil for one-time purchases. Xcode writes the year 4001.
    package internal(set) var expiresAt: Int64?
    /// The instant at which Apple took it back, in milliseconds since 1970.
    package internal(set) var cancelledAt: Int64?
}

/// The outcome of reading a receipt locally. Never an error, because Apple may judge what cannot be read here.
package enum LocalReading: Sendable, Hashable {
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
    package var receipt: LocalReceipt? { if case .read(let receipt) = self { receipt } else { nil } }
}

/// Reads the iOS 6 style transaction receipt: a property list whose `purchase-info` is the Base64 of another one.
enum LegacyReceipt {
    static func reading(of bytes: [UInt8]) -> LocalReading {
        let outer = PropertyListTexts(in: bytes)
        guard let info = outer["purchase-info"] else { return .unreadable("neither PKCS#7 nor an old property list") }
        let characters = info.utf8.filter { !$0.isWhiteSpace }
        guard let inside = try? ReceiptData(base64: characters).bytes else {
            return .unreadable("a property list whose purchase-info is not Base64")
        }
        let fields = PropertyListTexts(in: inside)
        let transaction = fields["transaction-id"]
        guard let original = fields["original-transaction-id"] ?? transaction else {
            return .unreadable("a property list whose purchase-info names no transaction")
        }
        let purchase = LocalPurchase(
            productID: fields["product-id"], transactionID: transaction, originalTransactionID: original,
            webOrderLineItemID: fields["web-order-line-item-id"],
            expiresAt: instant(in: fields, "expires-date-ms", "expires-date", "expires-date-formatted"),
            cancelledAt: instant(in: fields, "cancellation-date-ms", "cancellation-date"))
        return .read(
            LocalReceipt(
                form: .legacy, bundleID: fields["bid"],
                bundleAttributes: outer.count(of: "purchase-info") == 1 ? fields.count(of: "bid") : 0,
                environment: outer["environment"], createdAt: nil, purchases: [purchase],
                unreadableParts: outer.isWhole && fields.isWhole ? 0 : 1))
    }

    /// Returns milliseconds if they are given (also in a legacy `expires-date`), else reads the text form.
    private static func instant(in fields: PropertyListTexts, _ names: String...) -> Int64? {
        for name in names {
            guard let text = fields[name] else { continue }
            if let milliseconds = Int64(text) { return LenientInstant.believable(milliseconds) }
            if let milliseconds = LenientInstant.milliseconds(text) { return milliseconds }
        }
        return nil
    }
}

/// The `"name" = "text";` pairs of an old property list. Everything else in it is skipped.
struct PropertyListTexts {
    /// The most pairs that are read; real receipts have about twenty.
    static let pairsMax = 256

    private var texts: [String: [String]] = [:]
    /// Whether no pair was left out for being one too many.
    let isWhole: Bool

    /// Reads the pairs in `bytes`; of duplicate names, the last counts.
    init(in bytes: [UInt8]) {
        var rest = bytes[...]
        var pairs = 0
        while pairs < Self.pairsMax, let name = Self.quoted(&rest) {
            rest = rest.drop(while: \.isWhiteSpace)
            guard rest.first == UInt8(ascii: "=") else { continue }
            rest = rest.dropFirst().drop(while: \.isWhiteSpace)
            guard rest.first == UInt8(ascii: "\""), let text = Self.quoted(&rest) else { continue }
            texts[name, default: []].append(text)
            pairs += 1
        }
        isWhole = pairs < Self.pairsMax
    }

    func count(of name: String) -> Int { texts[name]?.count ?? 0 }

    /// The text called `name`; nil when it is missing or empty.
    subscript(_ name: String) -> String? { texts[name]?.last.flatMap { $0.isEmpty ? nil : $0 } }

    /// Takes the text between the next two quotes; a backslash keeps the character after it.
    private static func quoted(_ rest: inout ArraySlice<UInt8>) -> String? {
        guard let quote = rest.firstIndex(of: UInt8(ascii: "\"")) else { return nil }
        rest = rest[(quote + 1)...]
        var content: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"): content.append(rest.popFirst() ?? byte)
            default: content.append(byte)
            }
        }
        return nil
    }
}
