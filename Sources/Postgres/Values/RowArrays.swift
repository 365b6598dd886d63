/// One-dimensional arrays: plain (no element may be NULL), `…IfPresent` (nil when the column is NULL) and `…Elements`
/// (an element that is NULL is nil).
extension Row {
    /// The column as an array of `bool`.
    package func bools(_ column: String) throws(DatabaseError) -> [Bool] { try filled(column, .bool) }
    /// The same; nil when the column is NULL.
    package func boolsIfPresent(_ column: String) throws(DatabaseError) -> [Bool]? {
        try filledIfPresent(column, .bool)
    }
    /// The same, where elements may be NULL.
    package func boolElements(_ column: String) throws(DatabaseError) -> [Bool?] {
        try present(column, ColumnType<Bool>.bool.elements)
    }

    /// The column as an array of `int2`.
    package func int2s(_ column: String) throws(DatabaseError) -> [Int16] { try filled(column, .int2) }
    /// The same; nil when the column is NULL.
    package func int2sIfPresent(_ column: String) throws(DatabaseError) -> [Int16]? {
        try filledIfPresent(column, .int2)
    }
    /// The same, where elements may be NULL.
    package func int2Elements(_ column: String) throws(DatabaseError) -> [Int16?] {
        try present(column, ColumnType<Int16>.int2.elements)
    }

    /// The column as an array of `int4` or `int2`.
    package func int4s(_ column: String) throws(DatabaseError) -> [Int32] { try filled(column, .int4) }
    /// The same; nil when the column is NULL.
    package func int4sIfPresent(_ column: String) throws(DatabaseError) -> [Int32]? {
        try filledIfPresent(column, .int4)
    }
    /// The same, where elements may be NULL.
    package func int4Elements(_ column: String) throws(DatabaseError) -> [Int32?] {
        try present(column, ColumnType<Int32>.int4.elements)
    }

    /// The column as an array of `int8`, `int4` or `int2`.
    package func int8s(_ column: String) throws(DatabaseError) -> [Int64] { try filled(column, .int8) }
    /// The same; nil when the column is NULL.
    package func int8sIfPresent(_ column: String) throws(DatabaseError) -> [Int64]? {
        try filledIfPresent(column, .int8)
    }
    /// The same, where elements may be NULL.
    package func int8Elements(_ column: String) throws(DatabaseError) -> [Int64?] {
        try present(column, ColumnType<Int64>.int8.elements)
    }

    /// The column as an array of `float8` or `float4`.
    package func float8s(_ column: String) throws(DatabaseError) -> [Double] { try filled(column, .float8) }
    /// The same; nil when the column is NULL.
    package func float8sIfPresent(_ column: String) throws(DatabaseError) -> [Double]? {
        try filledIfPresent(column, .float8)
    }
    /// The same, where elements may be NULL.
    package func float8Elements(_ column: String) throws(DatabaseError) -> [Double?] {
        try present(column, ColumnType<Double>.float8.elements)
    }

    /// The column as an array of text, as `text(_:)` reads it.
    package func texts(_ column: String) throws(DatabaseError) -> [String] { try filled(column, .text) }
    /// The same; nil when the column is NULL.
    package func textsIfPresent(_ column: String) throws(DatabaseError) -> [String]? {
        try filledIfPresent(column, .text)
    }
    /// The same, where elements may be NULL.
    package func textElements(_ column: String) throws(DatabaseError) -> [String?] {
        try present(column, ColumnType<String>.text.elements)
    }

    /// The column as an array of `bytea` each.
    package func byteas(_ column: String) throws(DatabaseError) -> [[UInt8]] { try filled(column, .bytea) }
    /// The same; nil when the column is NULL.
    package func byteasIfPresent(_ column: String) throws(DatabaseError) -> [[UInt8]]? {
        try filledIfPresent(column, .bytea)
    }
    /// The same, where elements may be NULL.
    package func byteaElements(_ column: String) throws(DatabaseError) -> [[UInt8]?] {
        try present(column, ColumnType<[UInt8]>.bytea.elements)
    }

    /// The column as an array of microseconds since 1970, as `timestamptz(_:)` reads them.
    package func timestamptzs(_ column: String) throws(DatabaseError) -> [Int64] { try filled(column, .timestamptz) }
    /// The same; nil when the column is NULL.
    package func timestamptzsIfPresent(_ column: String) throws(DatabaseError) -> [Int64]? {
        try filledIfPresent(column, .timestamptz)
    }
    /// The same, where elements may be NULL.
    package func timestamptzElements(_ column: String) throws(DatabaseError) -> [Int64?] {
        try present(column, ColumnType<Int64>.timestamptz.elements)
    }

    /// The column as an array of the 16 bytes of `uuid`.
    package func uuids(_ column: String) throws(DatabaseError) -> [[UInt8]] { try filled(column, .uuid) }
    /// The same; nil when the column is NULL.
    package func uuidsIfPresent(_ column: String) throws(DatabaseError) -> [[UInt8]]? {
        try filledIfPresent(column, .uuid)
    }
    /// The same, where elements may be NULL.
    package func uuidElements(_ column: String) throws(DatabaseError) -> [[UInt8]?] {
        try present(column, ColumnType<[UInt8]>.uuid.elements)
    }
}
