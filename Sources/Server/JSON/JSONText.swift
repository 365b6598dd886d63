/// JSON for programs: one line, sorted names, unescaped slashes.
///
/// The text is the same as that of `JSONEncoder`, which takes many times longer: every response is written here.
struct JSONText {
    /// The text in UTF-8.
    private(set) var bytes: [UInt8] = []

    /// A value to write, or one that is written already.
    enum Part {
        case value(JSONValue)
        case written(JSONText)
    }

    /// Writes a value.
    init(_ value: JSONValue) {
        bytes.reserveCapacity(512)
        write(value)
    }

    /// Writes an object whose members come in the order of their names.
    init(members: KeyValuePairs<String, Part>) {
        bytes.reserveCapacity(768)
        write(all: members, between: "{", "}") { text, member in
            text.write(text: member.key)
            text.put(":")
            text.write(member.value)
        }
    }

    /// Writes a list.
    init(elements: [JSONText]) {
        write(all: elements, between: "[", "]") { $0.bytes += $1.bytes }
    }

    private mutating func write(_ part: Part) {
        switch part {
        case .value(let value): write(value)
        case .written(let text): bytes += text.bytes
        }
    }

    private mutating func write(_ value: JSONValue) {
        switch value {
        case .null: put("null")
        case .bool(let value): put(value ? "true" : "false")
        case .integer(let value): bytes += String(value).utf8
        case .string(let value): write(text: value)
        case .array(let values):
            write(all: values, between: "[", "]") { $0.write($1) }
        case .object(let values):
            write(all: values.sorted { $0.key < $1.key }, between: "{", "}") { text, member in
                text.write(text: member.key)
                text.put(":")
                text.write(member.value)
            }
        }
    }

    private mutating func write<Element>(
        all elements: some Sequence<Element>, between first: StaticString, _ last: StaticString,
        each write: (inout JSONText, Element) -> Void
    ) {
        put(first)
        for (place, element) in elements.enumerated() {
            if place > 0 { put(",") }
            write(&self, element)
        }
        put(last)
    }

    private mutating func put(_ word: StaticString) {
        word.withUTF8Buffer { bytes += $0 }
    }

    /// Writes a string. RFC 8259, section 7: quotes, backslashes and control characters are escaped, in the shortest
    /// way.
    private mutating func write(text: String) {
        put("\"")
        var text = text
        text.withUTF8 { utf8 in
            var rest = utf8[...]
            while let place = rest.firstIndex(where: { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C }) {
                bytes += rest[..<place]
                write(escaped: rest[place])
                rest = rest[(place + 1)...]
            }
            bytes += rest
        }
        put("\"")
    }

    private mutating func write(escaped byte: UInt8) {
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
