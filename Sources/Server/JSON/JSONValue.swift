import Foundation

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
    /// Creates a truth value from a literal.
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates a whole number from a literal.
    package init(integerLiteral value: Int64) { self = .integer(value) }
    /// Creates a list from a literal.
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates `null` from `nil`.
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
