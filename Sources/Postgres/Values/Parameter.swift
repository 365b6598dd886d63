/// One SQL statement, prepared once per connection under its name.
package struct Statement: Sendable, Hashable {
    /// The name under which it is prepared and shown in messages; two different statements need two names.
    package let name: String
    /// The SQL, with `$1`, `$2`, … for parameters.
    package let sql: String

    package init(name: String, sql: String) { (self.name, self.sql) = (name, sql) }
}

/// One parameter of a statement in PostgreSQL's binary format, with its type; nil is NULL. Enum columns take text and a
/// cast in the statement (`$1::text::ledger.state`), so no enum OID is needed.
package struct Parameter: Sendable, Hashable {
    let type: UInt32
    let bytes: [UInt8]?

    init(_ type: TypeIdentifier, _ bytes: [UInt8]?) {
        self.type = type.oid
        self.bytes = bytes
    }

    package static func bool(_ value: Bool?) -> Parameter { Parameter(.bool, value.map(BinaryForm.bool)) }
    package static func int2(_ value: Int16?) -> Parameter { Parameter(.int2, value.map(BinaryForm.integer)) }
    package static func int4(_ value: Int32?) -> Parameter { Parameter(.int4, value.map(BinaryForm.integer)) }
    package static func int8(_ value: Int64?) -> Parameter { Parameter(.int8, value.map(BinaryForm.integer)) }
    package static func float8(_ value: Double?) -> Parameter { Parameter(.float8, value.map(BinaryForm.float8)) }
    /// A `text`; the server refuses U+0000.
    package static func text(_ value: String?) -> Parameter { Parameter(.text, value.map(BinaryForm.text)) }
    package static func bytea(_ value: [UInt8]?) -> Parameter { Parameter(.bytea, value) }
    /// A `jsonb` from JSON text; the server refuses text that is not JSON.
    package static func jsonb(_ value: String?) -> Parameter { Parameter(.jsonb, value.map(BinaryForm.jsonb)) }
    /// A `timestamptz` in microseconds since 1970; `Int64.max` is infinity, `Int64.min` is -infinity.
    package static func timestamptz(microseconds: Int64?) -> Parameter {
        Parameter(.timestamptz, microseconds.map(BinaryForm.timestamptz))
    }
    /// A `uuid` from its 16 bytes; the server refuses any other number of bytes.
    package static func uuid(_ value: [UInt8]?) -> Parameter { Parameter(.uuid, value) }
}

/// One-dimensional arrays; an element that is nil is NULL.
extension Parameter {
    package static func bools(_ values: [Bool?]) -> Parameter { array(.bools, of: .bool, values, BinaryForm.bool) }
    package static func int2s(_ values: [Int16?]) -> Parameter { array(.int2s, of: .int2, values, BinaryForm.integer) }
    package static func int4s(_ values: [Int32?]) -> Parameter { array(.int4s, of: .int4, values, BinaryForm.integer) }
    package static func int8s(_ values: [Int64?]) -> Parameter { array(.int8s, of: .int8, values, BinaryForm.integer) }
    package static func float8s(_ values: [Double?]) -> Parameter {
        array(.float8s, of: .float8, values, BinaryForm.float8)
    }
    package static func texts(_ values: [String?]) -> Parameter { array(.texts, of: .text, values, BinaryForm.text) }
    package static func byteas(_ values: [[UInt8]?]) -> Parameter { array(.byteas, of: .bytea, values) { $0 } }
    /// A `jsonb[]` from JSON texts.
    package static func jsonbs(_ values: [String?]) -> Parameter {
        array(.jsonbs, of: .jsonb, values, BinaryForm.jsonb)
    }
    /// A `timestamptz[]` in microseconds since 1970, with the infinities of `timestamptz(microseconds:)`.
    package static func timestamptzs(_ values: [Int64?]) -> Parameter {
        array(.timestamptzs, of: .timestamptz, values, BinaryForm.timestamptz)
    }
    /// A `uuid[]` from 16 bytes each.
    package static func uuids(_ values: [[UInt8]?]) -> Parameter { array(.uuids, of: .uuid, values) { $0 } }

    private static func array<Element>(
        _ type: TypeIdentifier, of element: TypeIdentifier, _ values: [Element?], _ encode: (Element) -> [UInt8]
    ) -> Parameter {
        Parameter(type, BinaryForm.array(of: element, values.map { $0.map(encode) }))
    }
}

/// Values as PostgreSQL's binary format writes them (the `*send` functions of the server; big-endian).
enum BinaryForm {
    /// PostgreSQL counts from 2000-01-01; this is the distance from 1970-01-01 in microseconds.
    static let epochOffset: Int64 = 946_684_800_000_000

    static func bool(_ value: Bool) -> [UInt8] { [value ? 1 : 0] }

    static func integer(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }

    static func float8(_ value: Double) -> [UInt8] { integer(value.bitPattern) }

    static func text(_ value: String) -> [UInt8] { Array(value.utf8) }

    /// One version byte, then the JSON as text.
    static func jsonb(_ value: String) -> [UInt8] { [1] + Array(value.utf8) }

    /// The infinities keep their bits. A value out of range stays out of range, and the server refuses it.
    static func timestamptz(_ microseconds: Int64) -> [UInt8] {
        if microseconds == .max || microseconds == .min { return integer(microseconds) }
        let (shifted, overflow) = microseconds.subtractingReportingOverflow(epochOffset)
        return integer(overflow ? Int64.min + 1 : shifted)
    }

    /// Header (dimensions, has NULLs, element type, length, lower bound 1), then length and bytes of each element.
    static func array(of element: TypeIdentifier, _ values: [[UInt8]?]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(20 + values.reduce(0) { $0 + 4 + ($1?.count ?? 0) })
        append(Int32(values.isEmpty ? 0 : 1), to: &bytes)
        append(Int32(values.contains { $0 == nil } ? 1 : 0), to: &bytes)
        append(element.oid, to: &bytes)
        guard !values.isEmpty else { return bytes }
        append(Int32(truncatingIfNeeded: values.count), to: &bytes)
        append(Int32(1), to: &bytes)
        for value in values {
            append(Int32(truncatingIfNeeded: value?.count ?? -1), to: &bytes)
            if let value { bytes.append(contentsOf: value) }
        }
        return bytes
    }

    private static func append(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }
}

extension ColumnType {
    /// A one-dimensional array of this type, element by element; a NULL element is nil. Nil when the bytes are no
    /// array, have more than one dimension, or contain another type. The header names the element type: the column's
    /// own OID is not needed, and unknown where it is an array of enums.
    var elements: ColumnType<[Value?]> {
        ColumnType<[Value?]>(name: "\(name)[]") { _, bytes in readElements(from: bytes) }
    }

    private func readElements(from bytes: UnsafeRawBufferPointer) -> [Value?]? {
        var values: [Value?] = []
        let isReadable = bytes.eachElement { type, element in
            let value = element.flatMap { decode(type, $0) }
            values.append(value)
            return element == nil || value != nil
        }
        return isReadable ? values : nil
    }
}

extension UnsafeRawBufferPointer {
    /// Reads the elements of an array, NULL as nil, until `read` returns false; returns whether all of them are read.
    fileprivate func eachElement(_ read: (_ type: TypeIdentifier, UnsafeRawBufferPointer?) -> Bool) -> Bool {
        guard count >= 12 else { return false }
        let dimensions = bigEndian(Int32.self)
        let type = TypeIdentifier(oid: tail(from: 8).bigEndian(UInt32.self))
        if dimensions == 0 { return count == 12 }
        guard dimensions == 1, count >= 20 else { return false }
        let elements = Int(tail(from: 12).bigEndian(Int32.self))
        guard elements >= 0, elements <= count / 4 else { return false }
        var offset = 20
        for _ in 0..<elements {
            guard count - offset >= 4 else { return false }
            let length = Int(tail(from: offset).bigEndian(Int32.self))
            offset += 4
            guard length >= 0 else {
                guard read(type, nil) else { return false }
                continue
            }
            guard count - offset >= length else { return false }
            guard read(type, UnsafeRawBufferPointer(rebasing: self[offset..<(offset + length)])) else { return false }
            offset += length
        }
        return offset == count
    }

    func tail(from offset: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[offset...]) }
}

/// The fields of one value of a composite type, read in the order of the type. A field that is NULL is nil; one that is
/// missing or has another type also makes the whole value unreadable. Further fields are ignored: a release may add some.
package struct CompositeFields {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 4
    private var left: Int
    /// Whether every field that was asked for has its type.
    private(set) var isReadable = true

    /// Starts with the header, the number of fields.
    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        left = bytes.count < 4 ? 0 : Int(bytes.bigEndian(Int32.self))
        isReadable = bytes.count >= 4
    }

    package mutating func bool() -> Bool? { next(.bool) }
    package mutating func int4() -> Int32? { next(.int4) }
    package mutating func int8() -> Int64? { next(.int8) }
    /// The next field as text or an enum.
    package mutating func text() -> String? { next(.text) }
    /// The next field as a `timestamptz` in microseconds since 1970; `Int64.max` and `.min` are the infinities.
    package mutating func timestamptz() -> Int64? { next(.timestamptz) }

    private mutating func next<Value>(_ type: ColumnType<Value>) -> Value? {
        guard isReadable, left > 0, bytes.count - offset >= 8 else { return unreadable() }
        let identifier = TypeIdentifier(oid: bytes.tail(from: offset).bigEndian(UInt32.self))
        let length = Int(bytes.tail(from: offset + 4).bigEndian(Int32.self))
        left -= 1
        offset += 8
        guard length >= 0 else { return nil }
        guard bytes.count - offset >= length else { return unreadable() }
        defer { offset += length }
        let field = UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + length)])
        return type.decode(identifier, field) ?? unreadable()
    }

    private mutating func unreadable<Value>() -> Value? {
        isReadable = false
        return nil
    }
}

extension Row {
    /// Reads the column, an array of a composite type or what `array_send` makes of one, value by value. `read` reads
    /// the fields in the order of the type, and returns false for a value that it does not accept.
    package func eachComposite(
        _ column: String, _ name: String, _ read: (inout CompositeFields) -> Bool
    ) throws(DatabaseError) {
        let isReadable = try withBytes(of: column) { bytes in
            bytes.eachElement { _, element in
                guard let element else { return false }
                var fields = CompositeFields(element)
                return read(&fields) && fields.isReadable
            }
        }
        guard isReadable else { throw failure("Column '\(column)' cannot be read as \(name)[]") }
    }
}
