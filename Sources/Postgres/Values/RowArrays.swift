/// One-dimensional arrays, without elements that are NULL unless the name says so.
extension Row {
    /// The column as an array of `bool`.
    package func bools(_ column: String) throws(DatabaseError) -> [Bool] { try filled(column, .bool) }

    /// The column as an array of `int2`.
    package func int2s(_ column: String) throws(DatabaseError) -> [Int16] { try filled(column, .int2) }

    /// The column as an array of `int4` or `int2`.
    package func int4s(_ column: String) throws(DatabaseError) -> [Int32] { try filled(column, .int4) }

    /// The column as an array of `int8`, `int4` or `int2`.
    package func int8s(_ column: String) throws(DatabaseError) -> [Int64] { try filled(column, .int8) }

    /// The column as an array of `float8` or `float4`.
    package func float8s(_ column: String) throws(DatabaseError) -> [Double] { try filled(column, .float8) }

    /// The column as an array of text, as `text(_:)` reads it.
    package func texts(_ column: String) throws(DatabaseError) -> [String] { try filled(column, .text) }
    /// The same, where elements may be NULL.
    package func textElements(_ column: String) throws(DatabaseError) -> [String?] {
        try present(column, ColumnType<String>.text.elements)
    }

    /// The column as an array of `bytea` each.
    package func byteas(_ column: String) throws(DatabaseError) -> [[UInt8]] { try filled(column, .bytea) }

    /// The column as an array of microseconds since 1970, as `timestamptz(_:)` reads them.
    package func timestamptzs(_ column: String) throws(DatabaseError) -> [Int64] { try filled(column, .timestamptz) }

    /// The column as an array of the 16 bytes of `uuid`.
    package func uuids(_ column: String) throws(DatabaseError) -> [[UInt8]] { try filled(column, .uuid) }
}
