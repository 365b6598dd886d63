/// A JSON text read once: a flat list of nodes over its bytes. Strings and numbers stay where they stand until asked
/// for, so ids keep all their digits and an answer of a thousand rows costs one pass.
struct JSONText: Sendable {
    /// The index of the outermost value.
    static let root = 0

    let bytes: [UInt8]
    let nodes: [JSONNode]
}

/// One value, or one key, in a `JSONText`.
struct JSONNode: Sendable {
    enum Kind: UInt8, Sendable {
        case null, boolean, number, string, escapedString, array, object
    }

    let kind: Kind
    /// The first byte of the content; for a string, after its quote.
    let start: Int32
    /// The byte after the content.
    var end: Int32
    /// The node after this value and everything in it.
    var next: Int32

    var isObject: Bool { kind == .object }
    var isArray: Bool { kind == .array }
    /// Where the content stands.
    var content: Range<Int> { Int(start)..<Int(end) }
}

/// Values read leniently: a scalar is a text whether it came as string, number or boolean.
extension JSONText {
    /// The values of the array at `index`; empty for anything else.
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

    /// Whether there is nothing at `index`: null, or a string of nothing but white space.
    func isAbsent(_ index: Int) -> Bool {
        switch nodes[index].kind {
        case .null: true
        case .string: bytes[nodes[index].content].allSatisfy(\.isWhiteSpace)
        case .boolean, .number, .escapedString, .array, .object: false
        }
    }

    /// The text of a string, number or boolean without white space around it; nil for nothing, null, arrays and
    /// objects.
    func scalar(_ index: Int) -> String? {
        let node = nodes[index]
        switch node.kind {
        case .null, .array, .object: return nil
        case .boolean, .number: return plain(node)
        case .string: return touchesSpace(node) ? Self.trimmed(plain(node)) : plain(node)
        case .escapedString: return Self.trimmed(unescaped(node))
        }
    }

    /// The number that a string or number at `index` is, when it is nothing but digits; nil says only that care is
    /// needed.
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

    /// The text of a key or string with its escapes removed.
    func unescaped(_ node: JSONNode) -> String { JSONEscapes.removed(from: bytes[node.content]) }

    private func plain(_ node: JSONNode) -> String {
        bytes.withUnsafeBufferPointer {
            String(decoding: UnsafeBufferPointer(rebasing: $0[node.content]), as: UTF8.self)
        }
    }

    /// Whether a string is empty, or begins or ends with white space.
    private func touchesSpace(_ node: JSONNode) -> Bool {
        node.start == node.end || bytes[Int(node.start)].isWhiteSpace || bytes[Int(node.end) - 1].isWhiteSpace
    }

    private static func trimmed(_ text: String) -> String? {
        let visible = text.drop(while: \.isWhitespace)
        guard let end = visible.lastIndex(where: { !$0.isWhitespace }) else { return nil }
        return String(visible[...end])
    }
}
