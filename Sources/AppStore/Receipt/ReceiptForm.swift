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
    /// Returns whether these bytes contain `needle`.
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
