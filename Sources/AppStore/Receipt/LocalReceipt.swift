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
    package var store: StoreEnvironment? {
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

/// Receipt bytes and their apparent form.
struct DecodedReceipt {
    let bytes: [UInt8]
    let form: ReceiptForm

    init(bytes: [UInt8]) {
        self.bytes = bytes
        form = ReceiptForm(sniffing: bytes)
    }

    /// Decodes the standard alphabet strictly; padding may be missing, unused bits are dropped.
    init(base64 text: [UInt8]) throws(ReceiptDataError) {
        if let bytes = text.withUnsafeBufferPointer(StandardBase64.decoded) {
            self.init(bytes: bytes)
        } else {
            try self.init(oddBase64: text)
        }
    }

    /// Decodes one character at a time, to report the exact fault and its position.
    init(oddBase64 text: [UInt8]) throws(ReceiptDataError) {
        let unpadded = text.prefix { $0 != UInt8(ascii: "=") }
        if let odd = text[unpadded.endIndex...].firstIndex(where: { $0 != UInt8(ascii: "=") }) {
            throw Self.foreign(UInt8(ascii: "="), in: text, at: odd - 1)
        }
        guard !unpadded.isEmpty else { throw .empty }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(unpadded.count * 3 / 4)
        var bits: UInt32 = 0
        var bitCount = 0
        for (position, character) in unpadded.enumerated() {
            guard let six = Self.sixBits(character) else { throw Self.foreign(character, in: text, at: position) }
            bits = bits << 6 | UInt32(six)
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                decoded.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
            }
        }
        guard unpadded.count % 4 != 1 else { throw .cutShort(characters: unpadded.count) }
        self.init(bytes: decoded)
    }

    /// The confidence that this is a complete receipt: 2 if the outer DER length agrees, 1 if only the form is known, 0
    /// if the form is unknown.
    var plausibility: Int {
        guard form != .unknown else { return 0 }
        return derLengthAgrees ? 2 : 1
    }

    private var derLengthAgrees: Bool {
        guard form == .unified, bytes.count > 6, bytes[1] > 0x80, bytes[1] <= 0x84 else { return false }
        let lengthBytes = Int(bytes[1] - 0x80)
        let length = bytes[2..<(2 + lengthBytes)].reduce(0) { $0 << 8 | Int($1) }
        return length + 2 + lengthBytes == bytes.count
    }

    private static func sixBits(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }

    /// Names the character for a person, whole even if it takes several bytes.
    private static func foreign(_ byte: UInt8, in text: [UInt8], at index: Int) -> ReceiptDataError {
        let shown: String
        if byte < 0x80 {
            shown = byte > 0x20 && byte < 0x7F ? "'\(Character(UnicodeScalar(byte)))'" : "control character \(byte)"
        } else {
            let character = String(decoding: text[index...].prefix(4), as: UTF8.self).first
            shown = character.map { "'\($0)'" } ?? "byte \(byte)"
        }
        return .foreignCharacter(shown, position: index + 1)
    }
}

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
