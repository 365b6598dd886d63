import CLibPQ

/// One row of a result, read by column name. Every reading function throws `.decoding`, with column and type, when the
/// column does not exist or has another type. For NULL the plain functions throw too; the `…IfPresent` ones return nil.
package struct Row: Sendable {
    let table: ResultTable
    let index: Int32

    /// Returns whether the column is NULL.
    package func isNull(_ column: String) throws(DatabaseError) -> Bool {
        table.isNull(index, try position(of: column))
    }

    func present<Value>(_ column: String, _ type: ColumnType<Value>) throws(DatabaseError) -> Value {
        guard let value = try optional(column, type) else {
            throw failure("Column '\(column)' is NULL where \(type.name) was asked for")
        }
        return value
    }

    func optional<Value>(_ column: String, _ type: ColumnType<Value>) throws(DatabaseError) -> Value? {
        let position = try position(of: column)
        guard !table.isNull(index, position) else { return nil }
        let stored = table.type(of: position)
        guard let value = table.withBytes(index, position, { type.decode(stored, $0) }) else {
            throw failure("Column '\(column)' cannot be read as \(type.name), its type has OID \(stored.oid)")
        }
        return value
    }

    func filled<Value>(_ column: String, _ type: ColumnType<Value>) throws(DatabaseError) -> [Value] {
        let elements = try present(column, type.elements)
        let values = elements.compactMap { $0 }
        guard values.count == elements.count else {
            throw failure("Column '\(column)' has a NULL element where none was expected")
        }
        return values
    }

    /// Runs `body` over the bytes of a column; throws when it is NULL.
    func withBytes(of column: String, _ body: (UnsafeRawBufferPointer) -> Bool) throws(DatabaseError) -> Bool {
        let position = try position(of: column)
        guard !table.isNull(index, position) else { throw failure("Column '\(column)' is NULL") }
        return table.withBytes(index, position, body)
    }

    private func position(of column: String) throws(DatabaseError) -> Int32 {
        guard let position = table.position(of: column) else { throw failure("There is no column '\(column)'") }
        return position
    }

    func failure(_ what: String) -> DatabaseError {
        DatabaseError(.decoding, "\(what) (statement '\(table.statementName)'); correct the statement or the reader.")
    }
}

/// Single values, each of the type in the name of its function. An integer column may be narrower than asked for.
extension Row {
    package func bool(_ column: String) throws(DatabaseError) -> Bool { try present(column, .bool) }
    package func boolIfPresent(_ column: String) throws(DatabaseError) -> Bool? { try optional(column, .bool) }

    package func int2(_ column: String) throws(DatabaseError) -> Int16 { try present(column, .int2) }
    package func int2IfPresent(_ column: String) throws(DatabaseError) -> Int16? { try optional(column, .int2) }

    package func int4(_ column: String) throws(DatabaseError) -> Int32 { try present(column, .int4) }
    package func int4IfPresent(_ column: String) throws(DatabaseError) -> Int32? { try optional(column, .int4) }

    package func int8(_ column: String) throws(DatabaseError) -> Int64 { try present(column, .int8) }
    package func int8IfPresent(_ column: String) throws(DatabaseError) -> Int64? { try optional(column, .int8) }

    /// The column as any integer, widened.
    package func int(_ column: String) throws(DatabaseError) -> Int { try present(column, .int) }
    package func intIfPresent(_ column: String) throws(DatabaseError) -> Int? { try optional(column, .int) }

    /// The column as a `float8` or `float4`.
    package func float8(_ column: String) throws(DatabaseError) -> Double { try present(column, .float8) }
    package func float8IfPresent(_ column: String) throws(DatabaseError) -> Double? { try optional(column, .float8) }

    /// The column as text: `text`, `varchar`, `name`, `json`, `jsonb`, `uuid` and every enum.
    package func text(_ column: String) throws(DatabaseError) -> String { try present(column, .text) }
    package func textIfPresent(_ column: String) throws(DatabaseError) -> String? { try optional(column, .text) }

    package func bytea(_ column: String) throws(DatabaseError) -> [UInt8] { try present(column, .bytea) }
    package func byteaIfPresent(_ column: String) throws(DatabaseError) -> [UInt8]? { try optional(column, .bytea) }

    /// The column as a `timestamptz` in microseconds since 1970; `Int64.max` and `.min` are the infinities.
    package func timestamptz(_ column: String) throws(DatabaseError) -> Int64 { try present(column, .timestamptz) }
    package func timestamptzIfPresent(_ column: String) throws(DatabaseError) -> Int64? {
        try optional(column, .timestamptz)
    }
}

/// One-dimensional arrays, without elements that are NULL unless the name says so.
extension Row {
    package func int8s(_ column: String) throws(DatabaseError) -> [Int64] { try filled(column, .int8) }
    package func texts(_ column: String) throws(DatabaseError) -> [String] { try filled(column, .text) }
    /// The same, where elements may be NULL.
    package func textElements(_ column: String) throws(DatabaseError) -> [String?] {
        try present(column, ColumnType<String>.text.elements)
    }
}

/// A result of libpq. It never changes once libpq has returned it, so any thread may read it.
final class ResultTable: @unchecked Sendable {
    private let pointer: OpaquePointer
    let statementName: String

    init(owning pointer: OpaquePointer, of statementName: String) {
        self.pointer = pointer
        self.statementName = statementName
    }

    deinit { PQclear(pointer) }

    var rows: [Row] {
        let count = PQntuples(pointer)
        return count == 0 ? [] : (0..<count).map { Row(table: self, index: $0) }
    }

    /// The rows of each of `count` callers, by the column `place`.
    func rows(of count: Int) throws(DatabaseError) -> [[Row]] {
        var callers = [[Row]](repeating: [], count: count)
        for row in rows {
            let place = try row.int8("place")
            guard 1...Int64(count) ~= place else { throw row.failure("Column 'place' is \(place) of \(count)") }
            callers[Int(place) - 1].append(row)
        }
        return callers
    }

    var columns: [String] {
        (0..<PQnfields(pointer)).map { column in PQfname(pointer, column).map { String(cString: $0) } ?? "" }
    }

    /// The number of rows the command changed; 0 for commands that change none.
    var affectedRows: Int { PQcmdTuples(pointer).flatMap { Int(String(cString: $0)) } ?? 0 }

    /// The first word of the command tag: `COMMIT` may come back as `ROLLBACK`.
    var commandTag: String { PQcmdStatus(pointer).map { String(cString: $0) } ?? "" }

    /// Returns the position of a column by its exact name. Rows have few columns, so comparing is faster than hashing.
    func position(of column: String) -> Int32? {
        column.withCString { wanted in
            (0..<PQnfields(pointer)).first { PQfname(pointer, $0).map { compare($0, wanted) } ?? false }
        }
    }

    func type(of column: Int32) -> TypeIdentifier { TypeIdentifier(oid: PQftype(pointer, column)) }

    func isNull(_ row: Int32, _ column: Int32) -> Bool { PQgetisnull(pointer, row, column) == 1 }

    /// Runs `body` over the bytes of a value, which live as long as the table.
    func withBytes<Value>(_ row: Int32, _ column: Int32, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        let count = Int(PQgetlength(pointer, row, column))
        return body(UnsafeRawBufferPointer(start: PQgetvalue(pointer, row, column), count: count))
    }

    private func compare(_ left: UnsafePointer<CChar>, _ right: UnsafePointer<CChar>) -> Bool {
        var position = 0
        while left[position] == right[position] {
            if left[position] == 0 { return true }
            position += 1
        }
        return false
    }
}

/// A Swift type to read a column as: its name for messages, and the decoding of the server's binary form.
struct ColumnType<Value>: Sendable {
    let name: String
    /// Returns nil when a value of the server's type cannot be read as this type.
    let decode: @Sendable (_ type: TypeIdentifier, _ bytes: UnsafeRawBufferPointer) -> Value?
}

extension ColumnType<Bool> {
    static let bool = ColumnType(name: "bool") { type, bytes in
        type == .bool && bytes.count == 1 ? bytes[0] != 0 : nil
    }
}

extension ColumnType where Value: FixedWidthInteger & SendableMetatype {
    /// Reads any integer type that always fits: a narrower column is widened, a wider one refused whatever its value.
    @inline(__always)
    static func integer(_ name: String) -> ColumnType {
        ColumnType(name: name) { type, bytes in
            switch (type, bytes.count) {
            case (.int2, 2): Value(exactly: bytes.bigEndian(Int16.self))
            case (.int4, 4) where Value.bitWidth >= 32: Value(exactly: bytes.bigEndian(Int32.self))
            case (.oid, 4) where Value.bitWidth >= 64: Value(exactly: bytes.bigEndian(UInt32.self))
            case (.int8, 8) where Value.bitWidth >= 64: Value(exactly: bytes.bigEndian(Int64.self))
            default: nil
            }
        }
    }
}

extension ColumnType<Int16> { static let int2 = integer("int2") }
extension ColumnType<Int32> { static let int4 = integer("int4") }
extension ColumnType<Int> { static let int = integer("an integer") }

extension ColumnType<Int64> {
    static let int8 = integer("int8")

    static let timestamptz = ColumnType(name: "timestamptz") { type, bytes in
        guard type == .timestamptz, bytes.count == 8 else { return nil }
        let stored = bytes.bigEndian(Int64.self)
        if stored == .max || stored == .min { return stored }
        let (shifted, overflow) = stored.addingReportingOverflow(BinaryForm.epochOffset)
        return overflow ? Int64.max - 1 : shifted
    }
}

extension ColumnType<Double> {
    static let float8 = ColumnType(name: "float8") { type, bytes in
        switch (type, bytes.count) {
        case (.float8, 8): Double(bitPattern: bytes.bigEndian(UInt64.self))
        case (.float4, 4): Double(Float(bitPattern: bytes.bigEndian(UInt32.self)))
        default: nil
        }
    }
}

extension ColumnType<String> {
    static let text = ColumnType(name: "text") { type, bytes in
        if type == .uuid { return uuidText(bytes) }
        if type == .jsonb {
            guard bytes.first == 1 else { return nil }
            return String(validating: bytes.dropFirst(), as: UTF8.self)
        }
        return type.isTextual ? String(validating: bytes, as: UTF8.self) : nil
    }

    /// Returns the canonical form, 8-4-4-4-12 lower-case hexadecimal digits.
    private static func uuidText(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard bytes.count == 16 else { return nil }
        var text = ""
        for (index, byte) in bytes.enumerated() {
            if index == 4 || index == 6 || index == 8 || index == 10 { text.append("-") }
            text.append(byte < 16 ? "0" : "")
            text.append(String(byte, radix: 16))
        }
        return text
    }
}

extension ColumnType<[UInt8]> {
    static let bytea = ColumnType(name: "bytea") { type, bytes in
        type == .bytea ? Array(bytes) : nil
    }
    static let uuid = ColumnType(name: "uuid") { type, bytes in
        type == .uuid && bytes.count == 16 ? Array(bytes) : nil
    }
}

extension UnsafeRawBufferPointer {
    /// Returns the first bytes as a big-endian integer; the caller has checked that there are enough.
    func bigEndian<Integer: FixedWidthInteger>(_ type: Integer.Type) -> Integer {
        Integer(bigEndian: loadUnaligned(as: Integer.self))
    }
}

/// A type of PostgreSQL by its OID; those of the built-in types never change (`pg_type.dat`).
struct TypeIdentifier: Hashable, Sendable {
    let oid: UInt32

    static let bool = TypeIdentifier(oid: 16)
    static let bytea = TypeIdentifier(oid: 17)
    static let int8 = TypeIdentifier(oid: 20)
    static let int2 = TypeIdentifier(oid: 21)
    static let int4 = TypeIdentifier(oid: 23)
    static let text = TypeIdentifier(oid: 25)
    static let oid = TypeIdentifier(oid: 26)
    static let float4 = TypeIdentifier(oid: 700)
    static let float8 = TypeIdentifier(oid: 701)
    static let timestamptz = TypeIdentifier(oid: 1184)
    static let uuid = TypeIdentifier(oid: 2950)
    static let jsonb = TypeIdentifier(oid: 3802)

    static let bools = TypeIdentifier(oid: 1000)
    static let byteas = TypeIdentifier(oid: 1001)
    static let int2s = TypeIdentifier(oid: 1005)
    static let int4s = TypeIdentifier(oid: 1007)
    static let texts = TypeIdentifier(oid: 1009)
    static let int8s = TypeIdentifier(oid: 1016)
    static let float8s = TypeIdentifier(oid: 1022)
    static let timestamptzs = TypeIdentifier(oid: 1185)
    static let uuids = TypeIdentifier(oid: 2951)
    static let jsonbs = TypeIdentifier(oid: 3807)

    /// Whether the binary form is UTF-8 text, as of "char", name, text, json, xml, unknown, bpchar and varchar. The
    /// user-defined types (from 16384) that we read are enums, whose form is text.
    var isTextual: Bool {
        switch oid {
        case 18, 19, 25, 114, 142, 705, 1042, 1043, 16_384...: true
        default: false
        }
    }
}
