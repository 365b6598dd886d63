/// The signed texts of a notification as they are stored: payloads without their base64url, and numbers of headers.
///
/// The form is `~NUMBER.SIGNATURE`, a line end, and the outer payload, whose inner texts are short (`ShortText`). The
/// outer text comes back byte for byte.
package enum PackedNotification {
    private static let lineEnd = UInt8(ascii: "\n")

    /// The headers of a notification's texts: the outer text's and those of the texts within it.
    package static func headers(of text: [UInt8], _ inner: [String]) -> Set<String> {
        Set(([text] + inner.map { Array($0.utf8) }).compactMap(ShortText.header))
    }

    /// Packs a text in compact form; nil for anything else, and where its header has no number.
    package static func packed(_ text: [UInt8], numbers: [String: Int32]) -> [UInt8]? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let number = numbers[String(decoding: parts[0], as: UTF8.self)],
            let payload = Base64URL.decoded(parts[1])
        else { return nil }
        return Array("~\(number).".utf8) + parts[2] + [lineEnd]
            + ShortText.shortenedStrings(of: payload, numbers: numbers)
    }

    /// Returns the text as it was signed; nil where the number of a header is unknown.
    package static func restored(_ packed: [UInt8], headers: [Int32: String]) -> [UInt8]? {
        guard let (number, signature, payload) = parts(of: packed), let header = headers[number],
            let restored = ShortText.restoredStrings(of: Array(payload), headers: headers)
        else { return nil }
        return Array("\(header).\(Base64URL.encoded(restored)).".utf8) + signature
    }

    /// The numbers of the headers of a packed notification.
    package static func numbers(in packed: [UInt8]) -> Set<Int32> {
        guard let (number, _, payload) = parts(of: packed) else { return [] }
        return ShortText.numbers(in: Array(payload)).union([number])
    }

    private static func parts(
        of packed: [UInt8]
    ) -> (number: Int32, signature: ArraySlice<UInt8>, payload: ArraySlice<UInt8>)? {
        guard packed.first == UInt8(ascii: "~"), let end = packed.firstIndex(of: lineEnd),
            let dot = packed[..<end].firstIndex(of: UInt8(ascii: ".")),
            let number = Int32(String(decoding: packed[1..<dot], as: UTF8.self))
        else { return nil }
        return (number, packed[(dot + 1)..<end], packed[(end + 1)...])
    }
}

extension SignedNotification {
    /// Reads a packed notification, which was verified when it came; nil where it cannot be read.
    package init?(packed: [UInt8]) {
        guard let end = packed.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let payload = Array(packed[(end + 1)...])
        let data = PayloadFields(payload)?.object("data")
        func inner(_ name: String) -> [UInt8]? { data?.text(name).flatMap { ShortText.payload(of: Array($0.utf8)) } }
        self.init(
            payload: payload, transaction: inner("signedTransactionInfo"), renewal: inner("signedRenewalInfo"))
    }
}
