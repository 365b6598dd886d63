/// Writes JSON: for programs one line, for people many, with unescaped slashes. A caller that writes an object gives its
/// members in the order of their names; a ``JSONValue`` is sorted here. The text is the same as that of `JSONEncoder`,
/// which takes many times longer.
package struct JSONText: Sendable {
    /// The text in UTF-8.
    package private(set) var bytes: [UInt8] = []
    /// How deep the next value lies where every value has a line of its own; nil for one line.
    private var depth: Int?

    /// Creates an empty text.
    package init() {}

    /// Writes a value, with `pretty` on many lines.
    package init(_ value: JSONValue, pretty: Bool = false) {
        depth = pretty ? 0 : nil
        bytes.reserveCapacity(512)
        write(value)
    }

    /// Writes an object; `members` writes its members.
    package init(_ members: (inout JSONText) -> Void) {
        bytes.reserveCapacity(1_024)
        object(members)
    }

    /// Writes an object; `members` writes its members.
    package mutating func object(_ members: (inout JSONText) -> Void) {
        put("{")
        members(&self)
        put("}")
    }

    /// Writes a member with text, or `null`.
    package mutating func member(_ name: StaticString, _ text: String?) {
        begin(name)
        if let text { write(text: text) } else { put("null") }
    }

    /// Writes a member that is true or false.
    package mutating func member(_ name: StaticString, _ flag: Bool) {
        begin(name)
        put(flag ? "true" : "false")
    }

    /// Writes a member with a whole number, or `null`.
    package mutating func member(_ name: StaticString, _ number: Int64?) {
        begin(name)
        if let number { bytes += String(number).utf8 } else { put("null") }
    }

    /// Writes a member with text that has nothing to escape; `write` appends it.
    package mutating func member(_ name: StaticString, plain write: (inout [UInt8]) -> Void) {
        begin(name)
        put("\"")
        write(&bytes)
        put("\"")
    }

    /// Writes a member with a value.
    package mutating func member(_ name: StaticString, _ value: JSONValue) {
        begin(name)
        write(value)
    }

    /// Writes a member with a value that is JSON text already.
    package mutating func member(_ name: StaticString, json: [UInt8]) {
        begin(name)
        write(json: json[...])
    }

    /// Writes a member with a list; `write` writes each element.
    package mutating func member<Element>(
        _ name: StaticString, each elements: [Element], _ write: (inout JSONText, Element) -> Void
    ) {
        begin(name)
        list(elements, write)
    }

    /// Writes a list; `write` writes each element.
    package mutating func list<Element>(_ elements: [Element], _ write: (inout JSONText, Element) -> Void) {
        self.write(all: elements, between: "[", "]", each: write)
    }

    /// Writes an object with a member for each element: `name` writes its name, `value` its value.
    package mutating func object<Element>(
        _ elements: [Element], name: (inout JSONText, Element) -> Void, value: (inout JSONText, Element) -> Void
    ) {
        write(all: elements, between: "{", "}") { text, element in
            name(&text, element)
            text.put(text.depth == nil ? ":" : " : ")
            value(&text, element)
        }
    }

    /// Writes a string whose content is escaped already.
    package mutating func write(escaped content: ArraySlice<UInt8>) {
        put("\"")
        bytes += content
        put("\"")
    }

    /// Appends JSON text as it is.
    package mutating func write(json: ArraySlice<UInt8>) { bytes += json }

    /// Writes the name of a member; only an object's first one follows its brace.
    private mutating func begin(_ name: StaticString) {
        if bytes.last != UInt8(ascii: "{") { put(",") }
        put("\"")
        put(name)
        put("\":")
    }

    /// Writes a value.
    package mutating func write(_ value: JSONValue) {
        switch value {
        case .null: put("null")
        case .bool(let value): put(value ? "true" : "false")
        case .integer(let value): bytes += String(value).utf8
        case .number(let digits): bytes += digits.utf8
        case .string(let value): write(text: value)
        case .array(let values): list(values) { $0.write($1) }
        case .object(let values):
            object(values.sorted { $0.key < $1.key }) {
                $0.write(text: $1.key)
            } value: {
                $0.write($1.value)
            }
        }
    }

    private mutating func write<Element>(
        all elements: [Element], between first: StaticString, _ last: StaticString,
        each write: (inout JSONText, Element) -> Void
    ) {
        put(first)
        depth = depth.map { $0 + 1 }
        if elements.isEmpty, depth != nil { put("\n") }
        for (place, element) in elements.enumerated() {
            if place > 0 { put(",") }
            breakLine()
            write(&self, element)
        }
        depth = depth.map { $0 - 1 }
        breakLine()
        put(last)
    }

    private mutating func breakLine() {
        guard let depth else { return }
        put("\n")
        for _ in 0..<depth { put("  ") }
    }

    private mutating func put(_ word: StaticString) { word.withUTF8Buffer { bytes += $0 } }

    /// Writes a string; quotes, backslashes and control characters are escaped in the shortest way (RFC 8259, 7).
    package mutating func write(text: String) {
        put("\"")
        var text = text
        text.withUTF8 { utf8 in
            // To look at every byte without a branch is faster than to stop at the first to escape.
            if Self.isPlain(utf8) { return bytes += utf8 }
            var rest = utf8[...]
            while let place = rest.firstIndex(where: Self.isEscaped) {
                bytes += rest[..<place]
                write(escaping: rest[place])
                rest = rest[(place + 1)...]
            }
            bytes += rest
        }
        put("\"")
    }

    private static func isEscaped(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x22 || byte == 0x5C }

    private static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var escaped: UInt8 = 0
        for byte in bytes { escaped |= isEscaped(byte) ? 1 : 0 }
        return escaped == 0
    }

    private mutating func write(escaping byte: UInt8) {
        switch byte {
        case 0x22: put(#"\""#)
        case 0x5C: put(#"\\"#)
        case 0x08: put(#"\b"#)
        case 0x09: put(#"\t"#)
        case 0x0A: put(#"\n"#)
        case 0x0C: put(#"\f"#)
        case 0x0D: put(#"\r"#)
        default:
            put(byte < 0x10 ? #"\u000"# : #"\u00"#)
            bytes += String(byte, radix: 16).utf8
        }
    }
}
