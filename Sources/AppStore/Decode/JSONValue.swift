/// One value of a `JSONText`, read leniently: a scalar is a text whether it came as string, number or boolean.
struct JSONValue {
    let text: JSONText
    let index: Int

    private var node: JSONNode { text.nodes[index] }

    var isObject: Bool { node.kind == .object }
    var isArray: Bool { node.kind == .array }

    /// Whether there is nothing here: null, or a string of nothing but white space.
    var isAbsent: Bool {
        switch node.kind {
        case .null: true
        case .string: text.bytes[Int(node.start)..<Int(node.end)].allSatisfy(\.isWhiteSpace)
        case .boolean, .number, .escapedString, .array, .object: false
        }
    }

    /// The values of an array; empty for anything else.
    var elements: [JSONValue] {
        guard isArray else { return [] }
        var values: [JSONValue] = []
        var child = index + 1
        while child < node.next {
            values.append(JSONValue(text: text, index: child))
            child = Int(text.nodes[child].next)
        }
        return values
    }

    /// The member called `name`; the last one when the key is there twice, nil when it is absent or this is no object.
    func member(_ name: String) -> JSONValue? {
        guard isObject else { return nil }
        var wanted = name
        // This is where decoding spends its time: one look at each key, without counting references on the way.
        let found = wanted.withUTF8 { wanted in
            text.nodes.withUnsafeBufferPointer { nodes in
                text.bytes.withUnsafeBufferPointer { bytes in
                    var key = index + 1
                    var found: Int?
                    while key < nodes[index].next {
                        if isName(nodes[key], wanted, in: bytes) { found = key + 1 }
                        key = Int(nodes[key + 1].next)
                    }
                    return found
                }
            }
        }
        return found.map { JSONValue(text: text, index: $0) }
    }

    /// The text of a string, number or boolean without white space around it; nil for nothing, null, arrays and objects.
    var scalar: String? {
        switch node.kind {
        case .null, .array, .object: return nil
        case .boolean, .number: return slice(node)
        case .string: return Self.trimmed(slice(node))
        case .escapedString: return Self.trimmed(unescaped(node))
        }
    }

    private func isName(
        _ key: JSONNode, _ wanted: UnsafeBufferPointer<UInt8>, in bytes: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        if key.kind == .escapedString { return unescaped(key).utf8.elementsEqual(wanted) }
        guard Int(key.end - key.start) == wanted.count else { return false }
        for at in 0..<wanted.count where bytes[Int(key.start) + at] != wanted[at] { return false }
        return true
    }

    private func slice(_ node: JSONNode) -> String {
        text.bytes.withUnsafeBufferPointer { bytes in
            String(decoding: UnsafeBufferPointer(rebasing: bytes[Int(node.start)..<Int(node.end)]), as: UTF8.self)
        }
    }

    private func unescaped(_ node: JSONNode) -> String {
        JSONEscapes.removed(from: text.bytes[Int(node.start)..<Int(node.end)])
    }

    private static func trimmed(_ text: String) -> String? {
        guard let first = text.utf8.first, let last = text.utf8.last else { return nil }
        guard first.isWhiteSpace || last.isWhiteSpace else { return text }
        let visible = text.drop(while: \.isWhitespace)
        guard let end = visible.lastIndex(where: { !$0.isWhitespace }) else { return nil }
        return String(visible[...end])
    }
}
