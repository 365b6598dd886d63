import Foundation
import Hummingbird
import Subscriptions

/// JSON for programs: one line, sorted names, unescaped slashes.
///
/// The text is the same as that of `JSONEncoder`, which takes many times longer: every response is written here.
struct JSONText {
    /// The text in UTF-8.
    private(set) var bytes: [UInt8] = []

    /// Writes a value.
    init(_ value: JSONValue) {
        bytes.reserveCapacity(512)
        write(value)
    }

    /// Writes an object; `members` writes its members in the order of their names.
    init(_ members: (inout JSONText) -> Void) {
        bytes.reserveCapacity(1_024)
        object(members)
    }

    /// Writes an object; `members` writes its members in the order of their names.
    mutating func object(_ members: (inout JSONText) -> Void) {
        put("{")
        members(&self)
        put("}")
    }

    /// Writes a member with text, or `null`.
    mutating func member(_ name: StaticString, _ text: String?) {
        begin(name)
        if let text { write(text: text) } else { put("null") }
    }

    /// Writes a member that is true or false.
    mutating func member(_ name: StaticString, _ flag: Bool) {
        begin(name)
        put(flag ? "true" : "false")
    }

    /// Writes a member with a whole number, or `null`.
    mutating func member(_ name: StaticString, _ number: Int64?) {
        begin(name)
        if let number { bytes += String(number).utf8 } else { put("null") }
    }

    /// Writes a member with an instant in ISO 8601, or `null`.
    mutating func member(_ name: StaticString, _ instant: Instant?) {
        begin(name)
        guard let instant else { return put("null") }
        put("\"")
        instant.writeISO8601(to: &bytes)
        put("\"")
    }

    /// Writes a member with a value.
    mutating func member(_ name: StaticString, _ value: JSONValue) {
        begin(name)
        write(value)
    }

    /// Writes a member with a list; `write` writes each element.
    mutating func member<Element>(
        _ name: StaticString, each elements: [Element], _ write: (inout JSONText, Element) -> Void
    ) {
        begin(name)
        self.write(all: elements, between: "[", "]", each: write)
    }

    /// Writes the name of a member; only an object's first one follows its brace.
    private mutating func begin(_ name: StaticString) {
        if bytes.last != UInt8(ascii: "{") { put(",") }
        put("\"")
        put(name)
        put("\":")
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

/// A JSON value with exact integers.
package enum JSONValue: Sendable, Hashable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A whole number.
    case integer(Int64)
    /// Text.
    case string(String)
    /// A list.
    case array([JSONValue])
    /// Named values.
    case object([String: JSONValue])

    /// Returns text, or `null` when there is none.
    package static func optional(_ text: String?) -> JSONValue {
        text.map { .string($0) } ?? .null
    }

    /// Returns a truth value, or `null` when there is none.
    package static func optional(_ value: Bool?) -> JSONValue {
        value.map { .bool($0) } ?? .null
    }

    /// Returns the value as JSON text with sorted keys; with `pretty` on many lines, for human readers.
    package func rendered(pretty: Bool = false) -> String {
        guard pretty else { return String(decoding: JSONText(self).bytes, as: UTF8.self) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        guard let data = try? encoder.encode(self) else { return "null" }
        return String(decoding: data, as: UTF8.self)
    }
}

extension JSONValue: Encodable {
    /// Writes the value.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let values): try container.encode(values)
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    /// Creates text from a literal.
    package init(stringLiteral value: String) { self = .string(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    package init(nilLiteral: ()) { self = .null }
    /// Creates named values from a literal; of equal names the last counts.
    package init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }
}

extension JSONValue: Decodable {
    /// Reads JSON text; throws `DecodingError` for text that is not JSON, and for numbers with a fraction.
    package init(parsing text: String) throws {
        self = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    /// Reads the value.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let values = try? container.decode([JSONValue].self) {
            self = .array(values)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }
}

extension Response {
    init(_ value: JSONValue, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) {
        self.init(JSONText(value), status: status, headers: headers)
    }

    /// Creates a JSON response from text that is already written.
    init(_ text: JSONText, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) {
        var fields = headers
        if !fields.contains(.contentType) { fields.append(.init(name: .contentType, value: "application/json")) }
        if !fields.contains(.cacheControl) { fields.append(.init(name: .cacheControl, value: "no-store")) }
        self.init(
            status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: text.bytes)))
    }
}
