/// Reads JSON into a flat list of nodes. Total on any bytes: it returns or throws, within bounded depth and memory.
///
/// Strict wherever leniency could mistake other text for an answer: the text must be complete, with nothing after it,
/// and its numbers and escapes must be valid JSON. Duplicate keys, control characters in strings and broken UTF-8 are
/// accepted.
struct JSONReader {
    static let bytesMax = 64 * 1024 * 1024
    static let depthMax = 64
    static let nodesMax = 8_000_000

    private var at = 0
    private var nodes: [JSONNode] = []
    private let bytes: UnsafeBufferPointer<UInt8>

    /// Reads all of `bytes` as JSON; throws an error that describes the fault.
    static func read(_ bytes: [UInt8]) throws(AnswerUnreadable) -> JSONDocument {
        guard bytes.count <= bytesMax else {
            throw AnswerUnreadable("a body of \(bytes.count) bytes, more than \(bytesMax)")
        }
        let nodes = try bytes.withUnsafeBufferPointer { bytes throws(AnswerUnreadable) in
            var reader = JSONReader(bytes: bytes)
            try reader.readText()
            return reader.nodes
        }
        return JSONDocument(bytes: bytes, nodes: nodes)
    }

    private init(bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
        nodes.reserveCapacity(bytes.count / 12 + 8)
    }

    private mutating func readText() throws(AnswerUnreadable) {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { at = 3 }
        skipSpace()
        guard at < bytes.count else { throw AnswerUnreadable("an empty body") }
        if bytes[at] == UInt8(ascii: "<") { throw AnswerUnreadable("a web page instead of JSON") }
        try readValue(depth: 1)
        skipSpace()
        guard at == bytes.count else { throw AnswerUnreadable("JSON followed by something else at byte \(at)") }
    }

    private mutating func readValue(depth: Int) throws(AnswerUnreadable) {
        guard at < bytes.count else { throw truncated }
        guard nodes.count < Self.nodesMax else { throw AnswerUnreadable("JSON of more than \(Self.nodesMax) values") }
        switch bytes[at] {
        case UInt8(ascii: "\""): try readString()
        case UInt8(ascii: "{"): try readObject(depth: depth)
        case UInt8(ascii: "["): try readArray(depth: depth)
        case UInt8(ascii: "t"): try readWord("true", as: .boolean)
        case UInt8(ascii: "f"): try readWord("false", as: .boolean)
        case UInt8(ascii: "n"): try readWord("null", as: .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try readNumber()
        default: throw unexpected
        }
    }

    private mutating func readObject(depth: Int) throws(AnswerUnreadable) {
        let index = try open(.object, depth: depth)
        if try closes(UInt8(ascii: "}"), index) { return }
        while true {
            guard at < bytes.count else { throw truncated }
            guard bytes[at] == UInt8(ascii: "\"") else { throw unexpected }
            try readString()
            skipSpace()
            guard at < bytes.count else { throw truncated }
            guard bytes[at] == UInt8(ascii: ":") else { throw unexpected }
            at += 1
            skipSpace()
            try readValue(depth: depth + 1)
            if try closes(UInt8(ascii: "}"), index) { return }
            try readComma()
        }
    }

    private mutating func readArray(depth: Int) throws(AnswerUnreadable) {
        let index = try open(.array, depth: depth)
        if try closes(UInt8(ascii: "]"), index) { return }
        while true {
            try readValue(depth: depth + 1)
            if try closes(UInt8(ascii: "]"), index) { return }
            try readComma()
        }
    }

    private mutating func open(_ kind: JSONNode.Kind, depth: Int) throws(AnswerUnreadable) -> Int {
        guard depth <= Self.depthMax else { throw AnswerUnreadable("JSON nested deeper than \(Self.depthMax)") }
        append(kind, from: at, to: at)
        at += 1
        return nodes.count - 1
    }

    @inline(__always)
    private mutating func closes(_ mark: UInt8, _ index: Int) throws(AnswerUnreadable) -> Bool {
        skipSpace()
        guard at < bytes.count else { throw truncated }
        guard bytes[at] == mark else { return false }
        at += 1
        nodes[index].end = Int32(at)
        nodes[index].next = Int32(nodes.count)
        return true
    }

    @inline(__always)
    private mutating func readComma() throws(AnswerUnreadable) {
        guard bytes[at] == UInt8(ascii: ",") else { throw unexpected }
        at += 1
        skipSpace()
    }

    private mutating func readString() throws(AnswerUnreadable) {
        let start = at + 1
        var kind = JSONNode.Kind.string
        at = bytes.endOfPlainText(from: start)
        while at < bytes.count, bytes[at] == UInt8(ascii: "\\") {
            kind = .escapedString
            try readEscape()
            at = bytes.endOfPlainText(from: at)
        }
        guard at < bytes.count else { throw truncated }
        append(kind, from: start, to: at)
        at += 1
    }

    private mutating func readEscape() throws(AnswerUnreadable) {
        at += 1
        guard at < bytes.count else { throw truncated }
        switch bytes[at] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            at += 1
        case UInt8(ascii: "u"):
            at += 1
            for _ in 0..<4 {
                guard at < bytes.count else { throw truncated }
                guard bytes[at].isHexadecimal else { throw unexpected }
                at += 1
            }
        default: throw unexpected
        }
    }

    private mutating func readWord(_ word: StaticString, as kind: JSONNode.Kind) throws(AnswerUnreadable) {
        let letters = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        let present = bytes[at...].prefix(letters.count)
        guard present.count == letters.count else { throw letters.starts(with: present) ? truncated : unexpected }
        guard present.elementsEqual(letters) else { throw unexpected }
        append(kind, from: at, to: at + letters.count)
        at += letters.count
    }

    /// Reads a number: `-`, then `0` or digits that do not begin with 0, then a fraction, then an exponent. Everything
    /// except the digits is optional.
    private mutating func readNumber() throws(AnswerUnreadable) {
        let start = at
        if bytes[at] == UInt8(ascii: "-") { at += 1 }
        if at < bytes.count, bytes[at] == UInt8(ascii: "0") { at += 1 } else { try readDigits() }
        if at < bytes.count, bytes[at] == UInt8(ascii: ".") {
            at += 1
            try readDigits()
        }
        if at < bytes.count, bytes[at] | 0x20 == UInt8(ascii: "e") {
            at += 1
            if at < bytes.count, bytes[at] == UInt8(ascii: "+") || bytes[at] == UInt8(ascii: "-") { at += 1 }
            try readDigits()
        }
        append(.number, from: start, to: at)
    }

    private mutating func readDigits() throws(AnswerUnreadable) {
        guard at < bytes.count else { throw truncated }
        guard bytes[at].isDigit else { throw unexpected }
        while at < bytes.count, bytes[at].isDigit { at += 1 }
    }

    @inline(__always)
    private mutating func append(_ kind: JSONNode.Kind, from start: Int, to end: Int) {
        nodes.append(JSONNode(kind: kind, start: Int32(start), end: Int32(end), next: Int32(nodes.count + 1)))
    }

    @inline(__always)
    private mutating func skipSpace() {
        while at < bytes.count, bytes[at].isJSONSpace { at += 1 }
    }

    private var truncated: AnswerUnreadable {
        AnswerUnreadable("JSON that ends in the middle, after \(bytes.count) bytes")
    }

    private var unexpected: AnswerUnreadable {
        AnswerUnreadable("text that is not JSON at byte \(at)")
    }
}

/// A JSON text read once: a flat list of nodes over its bytes. Strings and numbers are not converted until they are
/// requested, so ids keep all their digits and an answer of a thousand rows costs one pass.
struct JSONDocument: Sendable {
    /// The index of the outermost value.
    static let root = 0

    let bytes: [UInt8]
    let nodes: [JSONNode]
}

/// One value, or one key, in a `JSONDocument`.
struct JSONNode: Sendable {
    enum Kind: UInt8, Sendable {
        case null, boolean, number, string, escapedString, array, object
    }

    let kind: Kind
    /// The first byte of the content; for a string, the byte after its quote.
    let start: Int32
    /// The byte after the content.
    var end: Int32
    /// The node after this value and its contents.
    var next: Int32

    var isObject: Bool { kind == .object }
    var isArray: Bool { kind == .array }
    /// The byte range of the content.
    var content: Range<Int> { Int(start)..<Int(end) }
}

/// Lenient reading of values: a scalar is text, whether it arrived as a string, a number or a boolean.
extension JSONDocument {
    /// Returns the values of the array at `index`; empty for anything else.
    func elements(_ index: Int) -> [Int] {
        guard nodes[index].isArray else { return [] }
        var values: [Int] = []
        var child = index + 1
        while child < nodes[index].next {
            values.append(child)
            child = Int(nodes[child].next)
        }
        return values
    }

    /// Returns whether the value at `index` counts as absent: null, or a string of only white space.
    func isAbsent(_ index: Int) -> Bool {
        switch nodes[index].kind {
        case .null: true
        case .string: bytes[nodes[index].content].allSatisfy(\.isWhiteSpace)
        case .boolean, .number, .escapedString, .array, .object: false
        }
    }

    /// Returns the text of a string, number or boolean without surrounding white space; nil for empty text, null,
    /// arrays and objects.
    func scalar(_ index: Int) -> String? {
        let node = nodes[index]
        switch node.kind {
        case .null, .array, .object: return nil
        case .boolean, .number: return plain(node)
        case .string: return touchesSpace(node) ? Self.trimmed(plain(node)) : plain(node)
        case .escapedString: return Self.trimmed(unescaped(node))
        }
    }

    /// Returns the number in a string or number at `index` that consists only of digits; nil means only that a careful
    /// reading is needed.
    func digits(_ index: Int) -> Int64? {
        let node = nodes[index]
        guard node.kind == .string || node.kind == .number, (1...18).contains(node.content.count) else { return nil }
        return bytes.withUnsafeBufferPointer { bytes in
            var number: Int64 = 0
            for at in node.content {
                guard bytes[at].isDigit else { return nil }
                number = number &* 10 &+ Int64(bytes[at] &- UInt8(ascii: "0"))
            }
            return number
        }
    }

    /// Returns the text of a key or string with its escapes removed.
    func unescaped(_ node: JSONNode) -> String { JSONEscapes.removed(from: bytes[node.content]) }

    private func plain(_ node: JSONNode) -> String {
        bytes.withUnsafeBufferPointer {
            String(decoding: UnsafeBufferPointer(rebasing: $0[node.content]), as: UTF8.self)
        }
    }

    /// Returns whether a string is empty, or begins or ends with white space.
    private func touchesSpace(_ node: JSONNode) -> Bool {
        node.start == node.end || bytes[Int(node.start)].isWhiteSpace || bytes[Int(node.end) - 1].isWhiteSpace
    }

    private static func trimmed(_ text: String) -> String? {
        let visible = text.drop(while: \.isWhitespace)
        guard let end = visible.lastIndex(where: { !$0.isWhitespace }) else { return nil }
        return String(visible[...end])
    }
}

/// The escapes of JSON strings, in both directions.
enum JSONEscapes {
    /// Returns the text of a string whose escapes the reader has checked. Half a surrogate pair becomes U+FFFD.
    static func removed(from content: ArraySlice<UInt8>) -> String {
        var plain: [UInt8] = []
        plain.reserveCapacity(content.count)
        var rest = content
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let escape = rest.popFirst() else {
                plain.append(byte)
                continue
            }
            switch escape {
            case UInt8(ascii: "n"): plain.append(0x0A)
            case UInt8(ascii: "r"): plain.append(0x0D)
            case UInt8(ascii: "t"): plain.append(0x09)
            case UInt8(ascii: "b"): plain.append(0x08)
            case UInt8(ascii: "f"): plain.append(0x0C)
            case UInt8(ascii: "u"): plain.append(contentsOf: String(Character(takeScalar(&rest))).utf8)
            default: plain.append(escape)
            }
        }
        return String(decoding: plain, as: UTF8.self)
    }

    /// Returns a JSON string with its quotes.
    static func quoted(_ text: String) -> String {
        if isPlain(text) { return "\"\(text)\"" }
        var quoted = "\""
        quoted.reserveCapacity(text.utf8.count + 2)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\u{0}"..<" ": quoted += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }

    /// Returns whether a text has nothing to escape. It looks at every byte, which is faster than to stop at the first.
    static func isPlain(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var escaped: UInt8 = 0
            for byte in bytes {
                escaped |= (byte < 0x20 ? 1 : 0) | (byte == 0x22 ? 1 : 0) | (byte == 0x5C ? 1 : 0)
            }
            return escaped == 0
        }
    }

    private static func takeScalar(_ rest: inout ArraySlice<UInt8>) -> Unicode.Scalar {
        guard let unit = takeUnit(&rest) else { return "\u{FFFD}" }
        guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) ?? "\u{FFFD}" }
        let afterHigh = rest
        guard rest.popFirst() == UInt8(ascii: "\\"), rest.popFirst() == UInt8(ascii: "u"),
            let low = takeUnit(&rest), (0xDC00..<0xE000).contains(low)
        else {
            rest = afterHigh
            return "\u{FFFD}"
        }
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)) ?? "\u{FFFD}"
    }

    private static func takeUnit(_ rest: inout ArraySlice<UInt8>) -> UInt32? {
        let digits = rest.prefix(4)
        guard digits.count == 4, let unit = UInt32(String(decoding: digits, as: UTF8.self), radix: 16) else {
            return nil
        }
        rest = rest.dropFirst(4)
        return unit
    }
}

extension UInt8 {
    /// Whether this is white space between JSON values: space, tab, line feed, carriage return.
    var isJSONSpace: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }

    /// Whether this is `0` to `9`.
    var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }

    /// Whether this is a hexadecimal digit in either case.
    var isHexadecimal: Bool { isDigit || (self | 0x20) &- UInt8(ascii: "a") < 6 }
}

extension UnsafeBufferPointer<UInt8> {
    /// Returns the position of the next quote or backslash from `start` on; the end if there is none. It examines eight
    /// bytes at once, because most of an answer is strings.
    func endOfPlainText(from start: Int) -> Int {
        var at = start
        let raw = UnsafeRawBufferPointer(self)
        while count - at >= 8 {
            let eight = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: at, as: UInt64.self))
            let marks = (eight ^ Self.quotes).zeroBytes | (eight ^ Self.backslashes).zeroBytes
            if marks != 0 { return at + marks.trailingZeroBitCount / 8 }
            at += 8
        }
        while at < count, self[at] != UInt8(ascii: "\""), self[at] != UInt8(ascii: "\\") { at += 1 }
        return Swift.min(at, count)
    }

    private static var quotes: UInt64 { 0x2222_2222_2222_2222 }
    private static var backslashes: UInt64 { 0x5C5C_5C5C_5C5C_5C5C }
}

extension UInt64 {
    /// The top bit of every byte that is zero. Bytes above the lowest such byte may be marked wrongly.
    fileprivate var zeroBytes: UInt64 { (self &- 0x0101_0101_0101_0101) & ~self & 0x8080_8080_8080_8080 }
}
