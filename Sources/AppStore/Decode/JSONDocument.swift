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
