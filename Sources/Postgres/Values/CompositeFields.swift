/// The fields of one value of a composite type, read in the order of the type. A field that is NULL is nil.
///
/// A field that is missing or has another type is nil too, and makes the whole value unreadable. Fields behind those that
/// are read are ignored: a later release may add some.
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

    /// The next field as a `bool`.
    package mutating func bool() -> Bool? { next(.bool) }
    /// The next field as an `int4`.
    package mutating func int4() -> Int32? { next(.int4) }
    /// The next field as an `int8`.
    package mutating func int8() -> Int64? { next(.int8) }
    /// The next field as text or an enum.
    package mutating func text() -> String? { next(.text) }
    /// The next field as a `timestamptz` in microseconds since 1970; `Int64.max` and `.min` are the infinities.
    package mutating func timestamptz() -> Int64? { next(.timestamptz) }

    private mutating func next<Value>(_ type: ColumnType<Value>) -> Value? {
        guard isReadable, left > 0, bytes.count - offset >= 8 else { return unreadable() }
        let identifier = bytes.tail(from: offset).bigEndian(UInt32.self)
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
    /// The column as an array of a composite type. `read` reads the fields in the order of the type, and returns nil for
    /// a value that it does not accept.
    package func composites<Value>(
        _ column: String, _ name: String, _ read: @escaping @Sendable (inout CompositeFields) -> Value?
    ) throws(DatabaseError) -> [Value] {
        let type = ColumnType<Value>(name: name) { _, bytes in
            var fields = CompositeFields(bytes)
            let value = read(&fields)
            return fields.isReadable ? value : nil
        }
        return try filled(column, type)
    }
}
