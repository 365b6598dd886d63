/// A writer of JSON in a fixed key order, straight to bytes, for what Apple writes: verifyReceipt's answers, whose hot
/// path it is, and also the Server API's answers, signed texts and notifications.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []
    /// Whether numbers become strings and strings numbers in the places where Apple was observed to swap them.
    var swapsTypes = false
    private var needsComma: Bool

    /// Creates a writer; it begins with a comma where its members follow those of another writer.
    init(reserving count: Int = 1024, needsComma: Bool = false) {
        bytes.reserveCapacity(count)
        self.needsComma = needsComma
    }

    /// Returns the bytes of one object.
    static func object(reserving count: Int = 1024, _ body: (inout JSONWriter) throws -> Void) rethrows -> [UInt8] {
        var json = JSONWriter(reserving: count)
        try json.object(body)
        return json.bytes
    }

    mutating func object(_ body: (inout JSONWriter) throws -> Void) rethrows {
        separate()
        try enclosed("{", "}", body)
    }

    mutating func object(_ key: StaticString, _ body: (inout JSONWriter) throws -> Void) rethrows {
        name(key)
        try enclosed("{", "}", body)
    }

    mutating func array(_ key: StaticString, _ body: (inout JSONWriter) throws -> Void) rethrows {
        name(key)
        try enclosed("[", "]", body)
    }

    mutating func text(_ key: StaticString, _ value: String) {
        name(key)
        quoted(value)
    }

    /// Writes an element of an array.
    mutating func text(_ value: String) {
        separate()
        quoted(value)
    }

    mutating func number(_ key: StaticString, _ value: Int64) {
        name(key)
        digits(value)
    }

    mutating func boolean(_ key: StaticString, _ value: Bool) {
        name(key)
        put(value ? "true" : "false")
    }

    mutating func null(_ key: StaticString) {
        name(key)
        put("null")
    }

    /// Writes a number of the `receipt` of an answer, which Apple writes as a number.
    mutating func plainNumber(_ key: StaticString, _ value: Int64) {
        guard swapsTypes else { return number(key, value) }
        text(key, String(value))
    }

    /// Writes a number of an answer's row, which Apple writes as a string.
    mutating func rowNumber(_ key: StaticString, _ value: String) {
        guard swapsTypes else { return text(key, value) }
        name(key)
        bytes.append(contentsOf: value.utf8)
    }

    /// Writes a boolean of an answer's row, which Apple writes as a string.
    mutating func rowBoolean(_ key: StaticString, _ value: Bool) {
        guard swapsTypes else { return text(key, value ? "true" : "false") }
        boolean(key, value)
    }

    /// Writes Apple's triple: Greenwich text, milliseconds as a string, Pacific text.
    mutating func date(_ key: StaticString, _ moment: StoreTime) {
        dated(key, "") { AppleDates.appendGreenwich(moment, to: &$0.bytes) }
        dated(key, "_ms") { $0.digits(moment.milliseconds) }
        dated(key, "_pst") { AppleDates.appendPacific(moment, to: &$0.bytes) }
    }

    /// Writes the form of old receipts: milliseconds under the plain name, text under `_formatted`.
    mutating func legacyDate(_ key: StaticString, _ moment: StoreTime) {
        dated(key, "") { $0.digits(moment.milliseconds) }
        dated(key, "_formatted") { AppleDates.appendGreenwich(moment, to: &$0.bytes) }
        dated(key, "_formatted_pst") { AppleDates.appendPacific(moment, to: &$0.bytes) }
    }

    /// Writes one date. Its parts need no escapes, so they go straight to the bytes.
    private mutating func dated(_ key: StaticString, _ suffix: StaticString, _ value: (inout JSONWriter) -> Void) {
        name(key, suffix)
        put("\"")
        value(&self)
        put("\"")
    }

    private mutating func digits(_ value: Int64) {
        var text = String(value)
        text.withUTF8 { bytes.append(contentsOf: $0) }
    }

    private mutating func enclosed(
        _ open: StaticString, _ close: StaticString, _ body: (inout JSONWriter) throws -> Void
    ) rethrows {
        put(open)
        needsComma = false
        try body(&self)
        put(close)
        needsComma = true
    }

    private mutating func name(_ key: StaticString, _ suffix: StaticString = "") {
        separate()
        put("\"")
        put(key)
        put(suffix)
        put("\":")
    }

    private mutating func separate() {
        if needsComma { put(",") }
        needsComma = true
    }

    private mutating func put(_ word: StaticString) { word.withUTF8Buffer { bytes.append(contentsOf: $0) } }

    private mutating func quoted(_ value: String) {
        var value = value
        put("\"")
        value.withUTF8 { text in
            guard text.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) else {
                return bytes.append(contentsOf: text)
            }
            for byte in text {
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { put(#"\"#) }
                bytes.append(max(byte, UInt8(ascii: " ")))
            }
        }
        put("\"")
    }
}

/// A reader for the JSON that nearly every client of verifyReceipt sends: one object of plain strings and booleans. A
/// full parser handles everything else, so this one reports no errors.
enum FlatJSON {
    enum Value {
        case text([UInt8])
        case boolean(Bool)
    }

    /// Returns the members; nil when the body needs a full parser.
    static func members(of bytes: [UInt8]) -> [(key: String, value: Value)]? {
        bytes.withUnsafeBufferPointer { buffer in
            var scanner = Scanner(bytes: buffer)
            return scanner.object()
        }
    }

    private struct Scanner {
        let bytes: UnsafeBufferPointer<UInt8>
        var position = 0

        mutating func object() -> [(key: String, value: Value)]? {
            var members: [(key: String, value: Value)] = []
            guard take("{") else { return nil }
            repeat {
                guard let key = text(), take(":"), let value = value() else { return nil }
                members.append((String(decoding: key, as: UTF8.self), value))
            } while take(",")
            guard take("}") else { return nil }
            skipSpace()
            return position == bytes.count ? members : nil
        }

        private mutating func value() -> Value? {
            skipSpace()
            if follows("true") { return .boolean(true) }
            if follows("false") { return .boolean(false) }
            return text().map { .text($0) }
        }

        /// Reads a string that has no escapes except `\/`, which some encoders write for every slash of Base64.
        private mutating func text() -> [UInt8]? {
            guard take("\"") else { return nil }
            let start = position
            var slashes = 0
            while position < bytes.count {
                let byte = bytes[position]
                if byte == UInt8(ascii: "\"") { break }
                if byte == UInt8(ascii: "\\") {
                    guard position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "/") else { return nil }
                    slashes += 1
                    position += 1
                } else if byte < 0x20 || byte >= 0x80 {
                    return nil
                }
                position += 1
            }
            guard position < bytes.count else { return nil }
            let found = bytes[start..<position]
            position += 1
            return slashes == 0 ? Array(found) : found.filter { $0 != UInt8(ascii: "\\") }
        }

        private mutating func take(_ character: Unicode.Scalar) -> Bool {
            skipSpace()
            guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
            position += 1
            return true
        }

        private mutating func follows(_ word: StaticString) -> Bool {
            let length = word.utf8CodeUnitCount
            guard position + length <= bytes.count else { return false }
            let isThere = word.withUTF8Buffer { $0.elementsEqual(bytes[position..<(position + length)]) }
            if isThere { position += length }
            return isThere
        }

        private static func isSpace(_ byte: UInt8) -> Bool {
            byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
        }

        private mutating func skipSpace() {
            while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
        }
    }
}
