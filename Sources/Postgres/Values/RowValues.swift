/// Single values.
extension Row {
    /// The column as a `bool`.
    package func bool(_ column: String) throws(DatabaseError) -> Bool { try present(column, .bool) }
    /// The column as a `bool`; nil when NULL.
    package func boolIfPresent(_ column: String) throws(DatabaseError) -> Bool? { try optional(column, .bool) }

    /// The column as an `int2`.
    package func int2(_ column: String) throws(DatabaseError) -> Int16 { try present(column, .int2) }
    /// The column as an `int2`; nil when NULL.
    package func int2IfPresent(_ column: String) throws(DatabaseError) -> Int16? { try optional(column, .int2) }

    /// The column as an `int4` or `int2`.
    package func int4(_ column: String) throws(DatabaseError) -> Int32 { try present(column, .int4) }
    /// The column as an `int4` or `int2`; nil when NULL.
    package func int4IfPresent(_ column: String) throws(DatabaseError) -> Int32? { try optional(column, .int4) }

    /// The column as an `int8`, `int4` or `int2`.
    package func int8(_ column: String) throws(DatabaseError) -> Int64 { try present(column, .int8) }
    /// The column as an `int8`, `int4` or `int2`; nil when NULL.
    package func int8IfPresent(_ column: String) throws(DatabaseError) -> Int64? { try optional(column, .int8) }

    /// The column as any integer, widened.
    package func int(_ column: String) throws(DatabaseError) -> Int { try present(column, .int) }
    /// The column as any integer, widened; nil when NULL.
    package func intIfPresent(_ column: String) throws(DatabaseError) -> Int? { try optional(column, .int) }

    /// The column as a `float8` or `float4`.
    package func float8(_ column: String) throws(DatabaseError) -> Double { try present(column, .float8) }
    /// The column as a `float8` or `float4`; nil when NULL.
    package func float8IfPresent(_ column: String) throws(DatabaseError) -> Double? { try optional(column, .float8) }

    /// The column as text: `text`, `varchar`, `name`, `json`, `jsonb`, `uuid` and every enum.
    package func text(_ column: String) throws(DatabaseError) -> String { try present(column, .text) }
    /// The column as text: `text`, `varchar`, `name`, `json`, `jsonb`, `uuid` and every enum; nil when NULL.
    package func textIfPresent(_ column: String) throws(DatabaseError) -> String? { try optional(column, .text) }

    /// The column as a `bytea`.
    package func bytea(_ column: String) throws(DatabaseError) -> [UInt8] { try present(column, .bytea) }
    /// The column as a `bytea`; nil when NULL.
    package func byteaIfPresent(_ column: String) throws(DatabaseError) -> [UInt8]? { try optional(column, .bytea) }

    /// The column as a `timestamptz` in microseconds since 1970; `Int64.max` and `.min` are the infinities.
    package func timestamptz(_ column: String) throws(DatabaseError) -> Int64 { try present(column, .timestamptz) }
    /// The column as a `timestamptz`, as `timestamptz(_:)` reads it; nil when NULL.
    package func timestamptzIfPresent(_ column: String) throws(DatabaseError) -> Int64? {
        try optional(column, .timestamptz)
    }

    /// The column as the 16 bytes of a `uuid`.
    package func uuid(_ column: String) throws(DatabaseError) -> [UInt8] { try present(column, .uuid) }
    /// The column as the 16 bytes of a `uuid`; nil when NULL.
    package func uuidIfPresent(_ column: String) throws(DatabaseError) -> [UInt8]? { try optional(column, .uuid) }
}
