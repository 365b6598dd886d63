/// Reads JSON into a flat list of nodes. Total on any bytes: it returns or throws, within bounded depth and memory.
/// Strict wherever leniency could mistake other text for an answer: the text must be complete, with nothing after it,
/// and its numbers and escapes valid. Duplicate keys, control characters in strings and broken UTF-8 are accepted.
private struct JSONReader {
    private static let nodesMax = 8_000_000

    private var at = 0
    private var nodes: [JSONNode] = []
    private let bytes: UnsafeBufferPointer<UInt8>

    /// Reads all of `bytes` as JSON; throws an error that describes the fault.
    static func nodes(of bytes: [UInt8]) throws(NotJSON) -> [JSONNode] {
        guard bytes.count <= JSONDocument.bytesMax else {
            throw NotJSON("a body of \(bytes.count) bytes, more than \(JSONDocument.bytesMax)")
        }
        return try bytes.withUnsafeBufferPointer { bytes throws(NotJSON) in
            var reader = JSONReader(bytes: bytes)
            try reader.readText()
            return reader.nodes
        }
    }

    private init(bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
        nodes.reserveCapacity(bytes.count / 12 + 8)
    }

    private mutating func readText() throws(NotJSON) {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { at = 3 }
        skipSpace()
        guard at < bytes.count else { throw NotJSON("an empty body") }
        if bytes[at] == UInt8(ascii: "<") { throw NotJSON("a web page instead of JSON") }
        try readValue(depth: 1)
        skipSpace()
        guard at == bytes.count else { throw NotJSON("JSON followed by something else at byte \(at)") }
    }

    private mutating func readValue(depth: Int) throws(NotJSON) {
        guard at < bytes.count else { throw truncated }
        guard nodes.count < Self.nodesMax else { throw NotJSON("JSON of more than \(Self.nodesMax) values") }
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

    private mutating func readObject(depth: Int) throws(NotJSON) {
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

    private mutating func readArray(depth: Int) throws(NotJSON) {
        let index = try open(.array, depth: depth)
        if try closes(UInt8(ascii: "]"), index) { return }
        while true {
            try readValue(depth: depth + 1)
            if try closes(UInt8(ascii: "]"), index) { return }
            try readComma()
        }
    }

    private mutating func open(_ kind: JSONNode.Kind, depth: Int) throws(NotJSON) -> Int {
        guard depth <= JSONDocument.depthMax else { throw NotJSON("JSON nested deeper than \(JSONDocument.depthMax)") }
        append(kind, from: at, to: at)
        at += 1
        return nodes.count - 1
    }

    @inline(__always)
    private mutating func closes(_ mark: UInt8, _ index: Int) throws(NotJSON) -> Bool {
        skipSpace()
        guard at < bytes.count else { throw truncated }
        guard bytes[at] == mark else { return false }
        at += 1
        nodes[index].end = Int32(at)
        nodes[index].next = Int32(nodes.count)
        return true
    }

    @inline(__always)
    private mutating func readComma() throws(NotJSON) {
        guard bytes[at] == UInt8(ascii: ",") else { throw unexpected }
        at += 1
        skipSpace()
    }

    private mutating func readString() throws(NotJSON) {
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

    private mutating func readEscape() throws(NotJSON) {
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

    private mutating func readWord(_ word: StaticString, as kind: JSONNode.Kind) throws(NotJSON) {
        let letters = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        let present = bytes[at...].prefix(letters.count)
        guard present.count == letters.count else { throw letters.starts(with: present) ? truncated : unexpected }
        guard present.elementsEqual(letters) else { throw unexpected }
        append(kind, from: at, to: at + letters.count)
        at += letters.count
    }

    /// Reads a number: maybe `-`, then `0` or digits that do not begin with 0, then maybe a fraction and an exponent.
    private mutating func readNumber() throws(NotJSON) {
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

    private mutating func readDigits() throws(NotJSON) {
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

    private var truncated: NotJSON { NotJSON("JSON that ends in the middle, after \(bytes.count) bytes") }

    private var unexpected: NotJSON { NotJSON("text that is not JSON at byte \(at)") }
}

/// A JSON text read once: a flat list of nodes over its bytes. Strings and numbers are not converted until they are
/// requested, so ids keep all their digits and an answer of a thousand rows costs one pass.
package struct JSONDocument: Sendable {
    /// The longest text, in bytes.
    package static let bytesMax = 64 * 1024 * 1024
    /// The deepest nesting.
    package static let depthMax = 64
    /// The index of the outermost value.
    package static let root = 0

    /// The whole text.
    package let bytes: [UInt8]
    /// Its values and keys in their order.
    package let nodes: [JSONNode]

    /// Reads all of `bytes` as JSON; throws an error that describes the fault.
    package init(_ bytes: [UInt8]) throws(NotJSON) {
        nodes = try JSONReader.nodes(of: bytes)
        self.bytes = bytes
    }

    /// Reads the text of an object; nil for any other text.
    package init?(object bytes: [UInt8]) {
        guard let document = try? JSONDocument(bytes), document.nodes[Self.root].isObject else { return nil }
        self = document
    }
}

/// One value, or one key, in a `JSONDocument`.
package struct JSONNode: Sendable {
    /// What a value is.
    package enum Kind: UInt8, Sendable {
        case null, boolean, number, string, escapedString, array, object
    }

    package let kind: Kind
    /// The first byte of the content; for a string, the byte after its quote.
    package let start: Int32
    /// The byte after the content.
    package fileprivate(set) var end: Int32
    /// The node after this value and its contents.
    package fileprivate(set) var next: Int32

    package var isObject: Bool { kind == .object }
    package var isArray: Bool { kind == .array }
    /// The byte range of the content.
    @inlinable package var content: Range<Int> { Int(start)..<Int(end) }
}

/// A text that is not the JSON that was expected.
package struct NotJSON: Error, Sendable, Hashable, CustomStringConvertible {
    /// What it is, as half a sentence: "an empty body".
    package let reason: String

    /// Creates the error for a text that is `reason`.
    package init(_ reason: String) { self.reason = reason }

    /// The error in one sentence for a person.
    package var description: String { "Not the JSON that was expected: \(reason)." }
}

extension UInt8 {
    /// Whether this is a space, tab, line feed, vertical tab, form feed or carriage return.
    package var isWhiteSpace: Bool { self == 0x20 || (0x09...0x0D).contains(self) }

    /// Whether this is white space between JSON values: space, tab, line feed, carriage return.
    var isJSONSpace: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }

    /// Whether this is `0` to `9`.
    var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }

    /// Whether this is a hexadecimal digit in either case.
    fileprivate var isHexadecimal: Bool { isDigit || (self | 0x20) &- UInt8(ascii: "a") < 6 }
}

extension UnsafeBufferPointer<UInt8> {
    /// Returns the place of the next quote or backslash, or the end, eight bytes at once: answers are mostly strings.
    fileprivate func endOfPlainText(from start: Int) -> Int {
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
