/// A JSON value with exact numbers.
package enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    /// A whole number.
    case integer(Int64)
    /// Any other number, as it is written.
    case number(String)
    /// Text.
    case string(String)
    /// A list.
    case array([JSONValue])
    /// Named values.
    case object([String: JSONValue])

    /// Returns text, or `null` when there is none.
    package static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

    /// Returns a truth value, or `null` when there is none.
    package static func optional(_ value: Bool?) -> JSONValue { value.map { .bool($0) } ?? .null }

    /// Returns a whole number, or `null` when there is none.
    package static func optional(_ number: Int64?) -> JSONValue { number.map { .integer($0) } ?? .null }

    /// Returns a number in its usual form: whole numbers without decimals, others as text.
    package static func number(_ value: Double) -> JSONValue {
        Int64(exactly: value).map { .integer($0) } ?? .string("\(value)")
    }

    /// Returns named values without those that are `null`.
    package static func known(_ members: [String: JSONValue]) -> JSONValue {
        .object(members.filter { $0.value != .null })
    }

    /// Returns the value as JSON text with sorted keys; with `pretty` on many lines, for human readers.
    package func rendered(pretty: Bool = false) -> String {
        String(decoding: JSONText(self, pretty: pretty).bytes, as: UTF8.self)
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

extension JSONValue {
    /// Reads JSON text.
    package init(parsing text: String) throws(NotJSON) { self.init(try JSONDocument(Array(text.utf8))) }

    /// Copies a value out of a text; of equal names the last counts.
    package init(_ document: JSONDocument, at index: Int = JSONDocument.root) {
        let node = document.nodes[index]
        func text() -> String { String(decoding: document.bytes[node.content], as: UTF8.self) }
        switch node.kind {
        case .null: self = .null
        case .boolean: self = .bool(text() == "true")
        case .number: self = Int64(text()).map { .integer($0) } ?? .number(text())
        case .string: self = .string(text())
        case .escapedString: self = .string(document.unescaped(node))
        case .array: self = .array(document.elements(index).map { JSONValue(document, at: $0) })
        case .object: self = .object(document.members(index).mapValues { JSONValue(document, at: $0) })
        }
    }
}

/// The members of our own objects are read as columns are: exactly, with an error if one is missing or of another form.
extension JSONValue {
    /// Returns a member that is not null; nil if there is none.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self, let value = members[name], value != .null else { return nil }
        return value
    }

    /// The values of a list; empty for anything else.
    package var elements: [JSONValue] {
        guard case .array(let values) = self else { return [] }
        return values
    }

    /// Returns a member; throws ``NotJSON`` if there is none.
    package func member(_ name: String) throws(NotJSON) -> JSONValue { try Self.present(self[name], name) }

    /// Returns a text; throws ``NotJSON`` for anything else.
    package func text(_ name: String) throws(NotJSON) -> String { try Self.present(try textIfPresent(name), name) }

    /// Returns a text, or nil; throws ``NotJSON`` for anything else.
    package func textIfPresent(_ name: String) throws(NotJSON) -> String? {
        try ifPresent(name, "no text") { if case .string(let text) = $0 { text } else { nil } }
    }

    /// Returns a whole number; throws ``NotJSON`` for anything else.
    package func integer(_ name: String) throws(NotJSON) -> Int64 { try Self.present(try integerIfPresent(name), name) }

    /// Returns a whole number, or nil; throws ``NotJSON`` for anything else.
    package func integerIfPresent(_ name: String) throws(NotJSON) -> Int64? {
        try ifPresent(name, "no whole number") { if case .integer(let number) = $0 { number } else { nil } }
    }

    /// Returns a truth value, or nil; throws ``NotJSON`` for anything else.
    package func flagIfPresent(_ name: String) throws(NotJSON) -> Bool? {
        try ifPresent(name, "neither true nor false") { if case .bool(let flag) = $0 { flag } else { nil } }
    }

    private func ifPresent<Value>(
        _ name: String, _ otherForm: String, _ read: (JSONValue) -> Value?
    ) throws(NotJSON) -> Value? {
        guard let member = self[name] else { return nil }
        guard let value = read(member) else { throw NotJSON("an object whose \(name) is \(otherForm)") }
        return value
    }

    private static func present<Value>(_ value: Value?, _ name: String) throws(NotJSON) -> Value {
        guard let value else { throw NotJSON("an object without \(name)") }
        return value
    }
}
