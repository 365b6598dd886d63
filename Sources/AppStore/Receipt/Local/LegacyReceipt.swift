/// Reads the iOS 6 style transaction receipt: a property list whose `purchase-info` is the Base64 of another one.
enum LegacyReceipt {
    static func reading(of bytes: [UInt8]) -> LocalReading {
        let outer = PropertyListTexts(in: bytes)
        guard let info = outer["purchase-info"] else { return .unreadable("neither PKCS#7 nor an old property list") }
        let characters = info.utf8.filter { !$0.isWhiteSpace }
        guard let inside = try? DecodedReceipt(base64: characters).bytes else {
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

    private var texts: [String: String] = [:]
    private var counts: [String: Int] = [:]
    /// Whether no pair was left out for being one too many.
    private(set) var isWhole = true

    /// Reads the pairs in `bytes`; of duplicate names, the last counts.
    init(in bytes: [UInt8]) {
        var rest = bytes[...]
        var pairs = 0
        while pairs < Self.pairsMax, let name = Self.quoted(&rest) {
            rest = rest.drop(while: \.isWhiteSpace)
            guard rest.first == UInt8(ascii: "=") else { continue }
            rest = rest.dropFirst().drop(while: \.isWhiteSpace)
            guard rest.first == UInt8(ascii: "\""), let text = Self.quoted(&rest) else { continue }
            texts[name] = text
            counts[name, default: 0] += 1
            pairs += 1
        }
        isWhole = pairs < Self.pairsMax
    }

    /// Returns how many pairs have this name.
    func count(of name: String) -> Int { counts[name] ?? 0 }

    /// The text called `name`; nil when it is missing or empty.
    subscript(_ name: String) -> String? { texts[name].flatMap { $0.isEmpty ? nil : $0 } }

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
