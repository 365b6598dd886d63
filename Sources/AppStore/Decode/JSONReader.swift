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
