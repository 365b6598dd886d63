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
