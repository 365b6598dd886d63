/// One SQL statement, prepared once per connection under its name.
package struct Statement: Sendable, Hashable {
    /// The name under which it is prepared and shown in messages; two different statements need two names.
    package let name: String
    /// The SQL, with `$1`, `$2`, … for parameters.
    package let sql: String

    /// Creates a statement.
    package init(name: String, sql: String) {
        self.name = name
        self.sql = sql
    }
}

/// One parameter of a statement in PostgreSQL's binary format, with its type; nil is NULL.
///
/// Enum columns take text and a cast in the statement (`$1::text::ledger.state`), so no enum OID is needed.
package struct Parameter: Sendable, Hashable {
    let type: UInt32
    let bytes: [UInt8]?

    init(_ type: UInt32, _ bytes: [UInt8]?) {
        self.type = type
        self.bytes = bytes
    }

    /// A `bool`.
    package static func bool(_ value: Bool?) -> Parameter { Parameter(TypeIdentifier.bool, value.map(BinaryForm.bool)) }
    /// An `int2`.
    package static func int2(_ value: Int16?) -> Parameter {
        Parameter(TypeIdentifier.int2, value.map(BinaryForm.integer))
    }
    /// An `int4`.
    package static func int4(_ value: Int32?) -> Parameter {
        Parameter(TypeIdentifier.int4, value.map(BinaryForm.integer))
    }
    /// An `int8`.
    package static func int8(_ value: Int64?) -> Parameter {
        Parameter(TypeIdentifier.int8, value.map(BinaryForm.integer))
    }
    /// A `float8`.
    package static func float8(_ value: Double?) -> Parameter {
        Parameter(TypeIdentifier.float8, value.map(BinaryForm.float8))
    }
    /// A `text`; the server refuses U+0000.
    package static func text(_ value: String?) -> Parameter {
        Parameter(TypeIdentifier.text, value.map(BinaryForm.text))
    }
    /// A `bytea`.
    package static func bytea(_ value: [UInt8]?) -> Parameter { Parameter(TypeIdentifier.bytea, value) }
    /// A `jsonb` from JSON text; the server refuses text that is not JSON.
    package static func jsonb(_ value: String?) -> Parameter {
        Parameter(TypeIdentifier.jsonb, value.map(BinaryForm.jsonb))
    }
    /// A `timestamptz` in microseconds since 1970; `Int64.max` is infinity, `Int64.min` is -infinity.
    package static func timestamptz(microseconds: Int64?) -> Parameter {
        Parameter(TypeIdentifier.timestamptz, microseconds.map(BinaryForm.timestamptz))
    }
    /// A `uuid` from its 16 bytes; the server refuses any other number of bytes.
    package static func uuid(_ value: [UInt8]?) -> Parameter { Parameter(TypeIdentifier.uuid, value) }
}

/// One-dimensional arrays; an element that is nil is NULL.
extension Parameter {
    /// A `bool[]`.
    package static func bools(_ values: [Bool?]) -> Parameter {
        array(TypeIdentifier.bools, of: TypeIdentifier.bool, values, BinaryForm.bool)
    }
    /// An `int2[]`.
    package static func int2s(_ values: [Int16?]) -> Parameter {
        array(TypeIdentifier.int2s, of: TypeIdentifier.int2, values, BinaryForm.integer)
    }
    /// An `int4[]`.
    package static func int4s(_ values: [Int32?]) -> Parameter {
        array(TypeIdentifier.int4s, of: TypeIdentifier.int4, values, BinaryForm.integer)
    }
    /// An `int8[]`.
    package static func int8s(_ values: [Int64?]) -> Parameter {
        array(TypeIdentifier.int8s, of: TypeIdentifier.int8, values, BinaryForm.integer)
    }
    /// A `float8[]`.
    package static func float8s(_ values: [Double?]) -> Parameter {
        array(TypeIdentifier.float8s, of: TypeIdentifier.float8, values, BinaryForm.float8)
    }
    /// A `text[]`.
    package static func texts(_ values: [String?]) -> Parameter {
        array(TypeIdentifier.texts, of: TypeIdentifier.text, values, BinaryForm.text)
    }
    /// A `bytea[]`.
    package static func byteas(_ values: [[UInt8]?]) -> Parameter {
        array(TypeIdentifier.byteas, of: TypeIdentifier.bytea, values) { $0 }
    }
    /// A `jsonb[]` from JSON texts.
    package static func jsonbs(_ values: [String?]) -> Parameter {
        array(TypeIdentifier.jsonbs, of: TypeIdentifier.jsonb, values, BinaryForm.jsonb)
    }
    /// A `timestamptz[]` in microseconds since 1970, with the infinities of `timestamptz(microseconds:)`.
    package static func timestamptzs(_ values: [Int64?]) -> Parameter {
        array(TypeIdentifier.timestamptzs, of: TypeIdentifier.timestamptz, values, BinaryForm.timestamptz)
    }
    /// A `uuid[]` from 16 bytes each.
    package static func uuids(_ values: [[UInt8]?]) -> Parameter {
        array(TypeIdentifier.uuids, of: TypeIdentifier.uuid, values) { $0 }
    }

    private static func array<Element>(
        _ type: UInt32, of element: UInt32, _ values: [Element?], _ encode: (Element) -> [UInt8]
    ) -> Parameter {
        Parameter(type, BinaryForm.array(of: element, values.map { $0.map(encode) }))
    }
}
