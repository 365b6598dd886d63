/// Reads JSON into a flat list of nodes. Total on any bytes: it returns or throws, within bounded depth and memory.
///
/// Strict only where leniency could change the meaning: the text must be complete and alone. Duplicate keys, control
/// characters in strings and broken UTF-8 are let through.
struct JSONReader {
    static let depthMax = 64
    static let nodesMax = 8_000_000

    private let bytes: [UInt8]
    private var at = 0
    private var nodes: [JSONNode] = []

    /// The whole of `bytes` as JSON; throws what is wrong with it.
    static func read(_ bytes: [UInt8]) throws(AnswerUnreadable) -> JSONText {
        guard bytes.count < Int(Int32.max) else { throw AnswerUnreadable("a body of \(bytes.count) bytes") }
        var reader = JSONReader(bytes: bytes)
        try reader.readText()
        return JSONText(bytes: bytes, nodes: reader.nodes)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
        nodes.reserveCapacity(bytes.count / 16 + 8)
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
        case UInt8(ascii: "{"): try readObject(depth: depth)
        case UInt8(ascii: "["): try readArray(depth: depth)
        case UInt8(ascii: "\""): try readString()
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

    private mutating func closes(_ mark: UInt8, _ index: Int) throws(AnswerUnreadable) -> Bool {
        skipSpace()
        guard at < bytes.count else { throw truncated }
        guard bytes[at] == mark else { return false }
        at += 1
        nodes[index].end = Int32(at)
        nodes[index].next = Int32(nodes.count)
        return true
    }

    private mutating func readComma() throws(AnswerUnreadable) {
        guard bytes[at] == UInt8(ascii: ",") else { throw unexpected }
        at += 1
        skipSpace()
    }

    private mutating func readString() throws(AnswerUnreadable) {
        let start = at + 1
        var end = start
        var kind = JSONNode.Kind.string
        while end < bytes.count, bytes[end] != UInt8(ascii: "\"") {
            if bytes[end] == UInt8(ascii: "\\") {
                kind = .escapedString
                end += 1
            }
            end += 1
        }
        guard end < bytes.count else { throw truncated }
        append(kind, from: start, to: end)
        at = end + 1
    }

    private mutating func readWord(_ word: StaticString, as kind: JSONNode.Kind) throws(AnswerUnreadable) {
        let letters = String(describing: word).utf8
        let present = bytes[at...].prefix(letters.count)
        guard present.count == letters.count else { throw letters.starts(with: present) ? truncated : unexpected }
        guard present.elementsEqual(letters) else { throw unexpected }
        append(kind, from: at, to: at + letters.count)
        at += letters.count
    }

    private mutating func readNumber() throws(AnswerUnreadable) {
        let start = at
        while at < bytes.count, Self.isNumberByte(bytes[at]) { at += 1 }
        // A number that touches the end of the text is only possible outside any object: it is not an answer anyway.
        guard let last = bytes[start..<at].last, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(last) else {
            if at == bytes.count { throw truncated }
            throw unexpected
        }
        append(.number, from: start, to: at)
    }

    static func isNumberByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    private mutating func append(_ kind: JSONNode.Kind, from start: Int, to end: Int) {
        nodes.append(JSONNode(kind: kind, start: Int32(start), end: Int32(end), next: Int32(nodes.count + 1)))
    }

    private mutating func skipSpace() {
        while at < bytes.count, bytes[at].isWhiteSpace { at += 1 }
    }

    private var truncated: AnswerUnreadable {
        AnswerUnreadable("JSON that ends in the middle, after \(bytes.count) bytes")
    }

    private var unexpected: AnswerUnreadable {
        AnswerUnreadable("text that is not JSON at byte \(at)")
    }
}
