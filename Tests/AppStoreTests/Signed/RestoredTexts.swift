@testable import AppStore

/// Undoes what the product stores: with the headers by their numbers a text is again as it was signed.
extension ShortText {
    /// Returns a JSON text as it was before; nil where the number of a header is unknown.
    static func restoredStrings(of json: [UInt8], headers: [Int32: String]) -> [UInt8]? {
        let text = String(decoding: json, as: UTF8.self)
        let number = /"~(\d+)\./
        guard text.matches(of: number).allSatisfy({ header($0.output.1, of: headers) != nil }) else { return nil }
        return Array(text.replacing(number) { "\"\(header($0.output.1, of: headers) ?? "")." }.utf8)
    }

    fileprivate static func header(_ number: Substring, of headers: [Int32: String]) -> String? {
        Int32(number).flatMap { headers[$0] }
    }
}

extension PackedNotification {
    /// Returns the text as it was signed; nil where the number of a header is unknown.
    static func restored(_ packed: [UInt8], headers: [Int32: String]) -> [UInt8]? {
        guard let outer = String(decoding: packed, as: UTF8.self).wholeMatch(of: /~(\d+)\.(\S+)\n((?s).*)/)?.output,
            let header = ShortText.header(outer.1, of: headers),
            let payload = ShortText.restoredStrings(of: Array(outer.3.utf8), headers: headers)
        else { return nil }
        return Array("\(header).\(Base64URL.encoded(payload)).\(outer.2)".utf8)
    }
}
