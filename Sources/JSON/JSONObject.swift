/// Lenient reading of values: a scalar is text, whether it arrived as a string, a number or a boolean.
extension JSONDocument {
    /// Whether a key or a text holds a control character, which RFC 8259, section 7, forbids and this reader accepts.
    package var holdsControlCharacters: Bool {
        nodes.contains { node in
            (node.kind == .string || node.kind == .escapedString) && bytes[node.content].contains { $0 < 0x20 }
        }
    }

    /// Returns the values of the object at `index` by their keys; of equal keys the last counts.
    package func members(_ index: Int) -> [String: Int] {
        Dictionary(keys(index).map { (unescaped(nodes[$0]), $0 + 1) }) { $1 }
    }

    /// Returns the keys of the object at `index`, each before its value; empty for anything else.
    package func keys(_ index: Int) -> [Int] { children(of: index, .object, valueAfter: 1) }

    /// Returns the values of the array at `index`; empty for anything else.
    package func elements(_ index: Int) -> [Int] { children(of: index, .array, valueAfter: 0) }

    private func children(of index: Int, _ kind: JSONNode.Kind, valueAfter offset: Int) -> [Int] {
        var children: [Int] = []
        guard nodes[index].kind == kind else { return children }
        var child = index + 1
        while child < nodes[index].next {
            children.append(child)
            child = Int(nodes[child + offset].next)
        }
        return children
    }

    /// Returns whether the value at `index` counts as absent: null, or a string of only white space.
    package func isAbsent(_ index: Int) -> Bool {
        switch nodes[index].kind {
        case .null: true
        case .string: bytes[nodes[index].content].allSatisfy(\.isWhiteSpace)
        case .boolean, .number, .escapedString, .array, .object: false
        }
    }

    /// Returns the text of a string, number or boolean without surrounding white space; nil for empty or other values.
    package func scalar(_ index: Int) -> String? {
        let node = nodes[index]
        switch node.kind {
        case .null, .array, .object: return nil
        case .boolean, .number: return plain(node)
        case .string: return touchesSpace(node) ? Self.trimmed(plain(node)) : plain(node)
        case .escapedString: return Self.trimmed(unescaped(node))
        }
    }

    /// Returns the number in a string or number of digits alone; nil means only that a careful reading is needed.
    package func digits(_ index: Int) -> Int64? {
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
    package func unescaped(_ node: JSONNode) -> String { JSONEscapes.removed(from: bytes[node.content]) }

    private func plain(_ node: JSONNode) -> String {
        bytes.withUnsafeBufferPointer {
            String(decoding: UnsafeBufferPointer(rebasing: $0[node.content]), as: UTF8.self)
        }
    }

    private func touchesSpace(_ node: JSONNode) -> Bool {
        node.start == node.end || bytes[Int(node.start)].isWhiteSpace || bytes[Int(node.end) - 1].isWhiteSpace
    }

    private static func trimmed(_ text: String) -> String? {
        let visible = text.drop(while: \.isWhitespace)
        guard let end = visible.lastIndex(where: { !$0.isWhitespace }) else { return nil }
        return String(visible[...end])
    }
}

/// The members of one object, read leniently: a value of another form than requested counts as absent.
package struct JSONObject: Sendable {
    private let document: JSONDocument
    private let members: [String: Int]

    /// Reads a text that is an object; nil for anything else.
    package init?(_ bytes: [UInt8]) {
        guard let document = try? JSONDocument(bytes) else { return nil }
        self.init(document, at: JSONDocument.root)
    }

    /// Reads the object at an index of a text; nil for anything else.
    package init?(_ document: JSONDocument, at index: Int = JSONDocument.root) {
        guard document.nodes[index].isObject else { return nil }
        self.document = document
        members = document.members(index)
    }

    /// Returns whether a member is there and not null, of whatever form.
    package func states(_ name: String) -> Bool { members[name].map { !document.isAbsent($0) } ?? false }

    /// Returns the object in a member; nil if there is none.
    package func object(_ name: String) -> JSONObject? { members[name].flatMap { JSONObject(document, at: $0) } }

    /// Returns the objects of a list in a member; empty if there is none.
    package func objects(_ name: String) -> [JSONObject] { elements(name).compactMap { JSONObject(document, at: $0) } }

    /// Returns the texts of a list in a member; empty if there is none.
    package func texts(_ name: String) -> [String] { elements(name).compactMap(document.scalar) }

    private func elements(_ name: String) -> [Int] { members[name].map(document.elements) ?? [] }

    /// Returns a text; nil if absent, null or empty.
    package func text(_ name: String) -> String? { members[name].flatMap(document.scalar) }

    /// Returns a whole number of digits alone; nil for anything else.
    package func digits(_ name: String) -> Int64? { members[name].flatMap(document.digits) }

    /// Returns a boolean; 0 and 1 count too.
    package func flag(_ name: String) -> Bool? {
        switch text(name) {
        case "true", "1": true
        case "false", "0": false
        default: nil
        }
    }

    /// Returns the bytes of an object in a member; nil if there is none.
    package func bytes(ofObject name: String) -> [UInt8]? {
        guard let node = members[name].map({ document.nodes[$0] }), node.isObject else { return nil }
        return Array(document.bytes[node.content])
    }
}

/// The escapes of JSON strings.
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
        rest = rest.dropFirst(4)
        return digits.count == 4 ? UInt32(String(decoding: digits, as: UTF8.self), radix: 16) : nil
    }
}
