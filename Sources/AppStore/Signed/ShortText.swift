import JSON

/// The signed texts of a notification as they are stored: payloads without their base64url, and numbers of headers.
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

    /// Returns the outer payload and those of the texts within it, which were verified when they came; nil without one.
    static func payloads(of packed: [UInt8]) -> (outer: [UInt8], transaction: [UInt8]?, renewal: [UInt8]?)? {
        guard let end = packed.firstIndex(of: lineEnd) else { return nil }
        let outer = Array(packed[(end + 1)...])
        let data = JSONObject(outer)?.object("data")
        func inner(_ name: String) -> [UInt8]? { data?.text(name).flatMap { ShortText.payload(of: Array($0.utf8)) } }
        return (outer, inner("signedTransactionInfo"), inner("signedRenewalInfo"))
    }
}

extension SignedNotification {
    /// Reads a packed notification, which was verified when it came; nil where it cannot be read.
    package init?(packed: [UInt8]) {
        guard let (outer, transaction, renewal) = PackedNotification.payloads(of: packed) else { return nil }
        self.init(payload: outer, transaction: transaction, renewal: renewal)
    }
}

/// Signed texts as they are stored: a short reference to their header, which thousands of texts share, in its place.
/// A short text is `~NUMBER.PAYLOAD.SIGNATURE`; no part of a signed text has the sign `~`. The text itself comes back.
package enum ShortText {
    private static let sign = UInt8(ascii: "~")
    private static let dot = UInt8(ascii: ".")
    private static let quote = UInt8(ascii: "\"")

    /// Returns the header of a text in compact form; nil where there is none.
    package static func header(of text: [UInt8]) -> String? {
        text.firstIndex(of: dot).map { String(decoding: text[..<$0], as: UTF8.self) }
    }

    /// Returns the payload of a text, whole or short, without verifying it.
    package static func payload(of text: [UInt8]) -> [UInt8]? {
        let parts = text.split(separator: dot, maxSplits: 3, omittingEmptySubsequences: false)
        return parts.count == 3 ? Base64URL.decoded(parts[1]) : nil
    }

    /// Returns a JSON text whose signed texts are short; unchanged where a string of it begins with the sign itself.
    package static func shortenedStrings(of json: [UInt8], numbers: [String: Int32]) -> [UInt8] {
        guard !json.holds([quote, sign]) else { return json }
        return replacingStringStarts(of: json) { start in
            guard let dot = start.firstIndex(of: dot),
                let number = numbers[String(decoding: start[..<dot], as: UTF8.self)]
            else { return nil }
            return ([sign] + Array("\(number)".utf8), dot)
        } ?? json
    }

    /// Returns a JSON text whose signed texts have the claims that are kept alone.
    package static func reducedStrings(of json: [UInt8]) -> [UInt8] {
        replacingStringStarts(of: json) { text in reduced(text).map { ($0, text.endIndex) } } ?? json
    }

    /// Returns the claims that are kept of a signed text, as `~.PAYLOAD.` without the rest; nil of other text.
    static func reduced(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard let claims = payload(of: Array(text)).flatMap({ KeptClaims.kept(of: $0) }) else { return nil }
        return [sign, dot] + Array(Base64URL.encoded(claims).utf8) + [dot]
    }

    /// Replaces the beginning of strings: `start` gets the contents of a string and returns the new beginning, and where
    /// the rest begins. Nil where nothing is replaced.
    private static func replacingStringStarts(
        of json: [UInt8], _ start: (ArraySlice<UInt8>) -> (bytes: [UInt8], rest: Int)?
    ) -> [UInt8]? {
        var result: [UInt8] = []
        var (copied, at) = (0, 0)
        while let open = json[at...].firstIndex(of: quote) {
            guard let close = closing(of: json, after: open) else { break }
            if let replaced = start(json[(open + 1)..<close]) {
                result += json[copied...open]
                result += replaced.bytes
                copied = replaced.rest
            }
            at = close + 1
        }
        guard copied > 0 else { return nil }
        return result + json[copied...]
    }

    private static func closing(of json: [UInt8], after open: Int) -> Int? {
        var at = open + 1
        while at < json.count, json[at] != quote { at += json[at] == UInt8(ascii: "\\") ? 2 : 1 }
        return at < json.count ? at : nil
    }
}
