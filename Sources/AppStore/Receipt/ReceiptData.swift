import JSON

/// A receipt in the form Apple requires: standard, padded Base64 on one line. Spellings of the same bytes are equal.
/// Nearly every 21002 in practice comes from a damaged spelling, so the usual damage is repaired here. Decoding after
/// the repair is strict. Text that cannot be a receipt is rejected with an explanation.
package struct ReceiptData: Sendable, Hashable {
    /// The most characters accepted, before any repair: 8 MiB. Real receipts reach about 100 kB.
    package static let charactersMax = 8 * 1024 * 1024

    /// The decoded receipt: the bytes to store and to digest.
    package let bytes: [UInt8]
    /// The apparent form of the bytes.
    package let form: ReceiptForm

    /// Repairs the damage that devices, proxies and editors do to Base64, then decodes strictly: line breaks, spaces
    /// for pluses, the URL-safe alphabet, missing padding, JSON escapes, quotes, a `data:` prefix, PEM armour, percent
    /// encoding and Base64 in Base64.
    package init(normalising raw: String) throws(ReceiptDataError) {
        guard raw.utf8.count <= Self.charactersMax else { throw .tooLarge(characters: raw.utf8.count) }
        if let ordinary = Self.ordinary(raw) {
            self = ordinary
        } else {
            try self.init(normalisingWithCare: raw)
        }
    }

    /// Decodes any text by the full repair; for ordinary text it gives the same result as the short way.
    init(normalisingWithCare raw: String) throws(ReceiptDataError) {
        var decoded = try Self.decode(raw)
        if decoded.form == .unknown, let inner = try Self.recognisedInside(decoded.bytes, layersLeft: 3) {
            decoded = inner
        }
        self = decoded
    }

    /// Returns a receipt that needs no repair: clean Base64 of a known form; nil if the full repair is needed.
    private static func ordinary(_ raw: String) -> ReceiptData? {
        guard let bytes = StandardBase64.decoded(raw.utf8) else { return nil }
        let receipt = ReceiptData(bytes: bytes)
        return receipt.form == .unknown ? nil : receipt
    }

    private static func decode(_ text: String) throws(ReceiptDataError) -> ReceiptData {
        try ReceiptSpelling(repairing: text).decoded()
    }

    /// Returns the receipt inside bytes that are themselves Base64 text; nil if they are not, or lead to no known form:
    /// bytes that merely happen to be letters stay unchanged.
    private static func recognisedInside(
        _ bytes: [UInt8], layersLeft: Int
    ) throws(ReceiptDataError) -> ReceiptData? {
        let isText = bytes.allSatisfy { $0 < 0x7F && ($0 >= 0x20 || $0.isWhiteSpace) }
        guard layersLeft > 0, bytes.count >= 16, isText else { return nil }
        let inner: ReceiptData
        do {
            inner = try decode(String(decoding: bytes, as: UTF8.self))
        } catch {
            switch error {
            case .signedTransaction, .serverNotification: throw error
            case .empty, .tooLarge, .json, .propertyList, .webPage, .foreignCharacter, .cutShort: return nil
            }
        }
        guard inner.form == .unknown else { return inner }
        return try recognisedInside(inner.bytes, layersLeft: layersLeft - 1)
    }
}

extension ReceiptData {
    init(bytes: [UInt8]) {
        self.bytes = bytes
        form = ReceiptForm(sniffing: bytes)
    }

    /// Decodes the standard alphabet strictly; padding may be missing, unused bits are dropped.
    init(base64 text: [UInt8]) throws(ReceiptDataError) {
        if let bytes = StandardBase64.decoded(text) {
            self.init(bytes: bytes)
        } else {
            try self.init(oddBase64: text)
        }
    }

    /// Reports the exact fault and its position, and decodes what only lacks padding.
    init(oddBase64 text: [UInt8]) throws(ReceiptDataError) {
        let unpadded = text.prefix { $0 != UInt8(ascii: "=") }
        if let odd = text[unpadded.endIndex...].firstIndex(where: { $0 != UInt8(ascii: "=") }) {
            throw Self.foreign(UInt8(ascii: "="), in: text, at: odd - 1)
        }
        guard !unpadded.isEmpty else { throw .empty }
        if let odd = unpadded.firstIndex(where: { !StandardBase64.isLetter($0) }) {
            throw Self.foreign(text[odd], in: text, at: odd)
        }
        let padding = [UInt8](repeating: UInt8(ascii: "="), count: (4 - unpadded.count % 4) % 4)
        guard let bytes = StandardBase64.decoded(unpadded + padding) else {
            throw .cutShort(characters: unpadded.count)
        }
        self.init(bytes: bytes)
    }

    /// The confidence that the receipt is complete: 2 if the outer DER length agrees, else 1 if the form is known.
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

/// The apparent form of a receipt's bytes, read without trusting them.
package enum ReceiptForm: Sendable, Hashable {
    /// PKCS#7 signed data: the app receipt of iOS 7 and later, and of macOS.
    case unified
    /// An old property list with `purchase-info` and `signature`: the iOS 6 style transaction receipt.
    case legacy
    /// Neither; Apple decides.
    case unknown

    /// Detects the form of decoded receipt bytes; examines no more bytes than needed.
    init(sniffing bytes: some Collection<UInt8>) {
        if bytes.first == 0x30, bytes.prefix(64).holds(Self.signedDataIdentifier) {
            self = .unified
        } else if bytes.holds(Array(#""purchase-info""#.utf8)), bytes.holds(Array(#""signature""#.utf8)) {
            self = .legacy
        } else {
            self = .unknown
        }
    }

    /// The DER of the object identifier 1.2.840.113549.1.7.2, PKCS#7 signed data.
    private static let signedDataIdentifier: [UInt8] = [
        0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02,
    ]
}

extension Collection<UInt8> {
    func holds(_ needle: [UInt8]) -> Bool {
        guard let first = needle.first else { return true }
        var rest = self[...]
        while let start = rest.firstIndex(of: first) {
            rest = rest[start...]
            if rest.starts(with: needle) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}

/// Recognises other data posted in place of a receipt by its first characters.
enum OtherThanReceipt {
    /// Throws the kind of `bytes`, trimmed and as sent, if they are something other than a receipt.
    static func refuse(_ bytes: [UInt8]) throws(ReceiptDataError) {
        guard let first = bytes.first else { throw .empty }
        if bytes.count <= 12, wordsForNothing.contains(String(decoding: bytes, as: UTF8.self).lowercased()) {
            throw .empty
        }
        if first == UInt8(ascii: "{") {
            if bytes.holds(Array(#""signedPayload""#.utf8)) { throw .serverNotification }
            if bytes.holds(Array("purchase-info".utf8)) { throw .propertyList }
            throw .json
        }
        if first == UInt8(ascii: "<") {
            let start = String(decoding: bytes.prefix(9), as: UTF8.self).lowercased()
            if start.hasPrefix("<!doctype") || start.hasPrefix("<html") || start.hasPrefix("<?xml") { throw .webPage }
        }
        // `eyJ` is the Base64 of `{"`: with two dots it is a compact JSON web signature.
        if bytes.starts(with: Array("eyJ".utf8)), bytes.count(where: { $0 == UInt8(ascii: ".") }) == 2 {
            throw .signedTransaction
        }
    }

    private static let wordsForNothing: Set<String> = ["null", "(null)", "<null>", "nil", "undefined", "none"]
}

/// The reason a text cannot be sent to Apple as `receipt-data`. Its sentence says what it seems to be and the remedy.
package enum ReceiptDataError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Nothing is left after white space and quotes are removed, or the text is a word for nothing such as `null`.
    case empty
    /// The text has more characters than `ReceiptData.charactersMax`.
    case tooLarge(characters: Int)
    /// A StoreKit 2 transaction or another signed JSON web token.
    case signedTransaction
    /// The body of an App Store Server Notification, version 2.
    case serverNotification
    /// Another JSON object, for example a whole request or an answer from Apple.
    case json
    /// A property list that was not Base64 encoded, such as an old transaction receipt before encoding.
    case propertyList
    /// A web page.
    case webPage
    /// A character that no repair explains, with its position from 1 in the repaired text.
    case foreignCharacter(String, position: Int)
    /// A length that Base64 cannot have; the end is missing.
    case cutShort(characters: Int)

    /// The error in one sentence for a person.
    package var description: String {
        switch self {
        case .empty:
            "The receipt is empty; read it from the app's receipt file after a refresh and send it as Base64."
        case .tooLarge(let characters):
            "The receipt has \(characters) characters, more than \(ReceiptData.charactersMax); send only the receipt itself."
        case .signedTransaction:
            "This is a signed JSON web token of StoreKit 2, not a receipt; send the Base64 of the app's receipt file."
        case .serverNotification:
            "This is an App Store Server Notification (signedPayload), not a receipt; send it to the notifications address."
        case .json:
            "This is a JSON object, not a receipt; send only the Base64 text that belongs in receipt-data."
        case .propertyList:
            "This is an old transaction receipt in clear text; encode its bytes as Base64 and send that."
        case .webPage:
            "This is a web page, not a receipt; send the Base64 of the app's receipt file."
        case .foreignCharacter(let character, let position):
            "The receipt is not Base64: it has \(character) at position \(position); encode the receipt file as Base64."
        case .cutShort(let characters):
            "The receipt is cut short: \(characters) characters cannot be Base64; send the whole text."
        }
    }
}
