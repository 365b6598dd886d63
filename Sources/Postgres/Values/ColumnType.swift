/// A Swift type to read a column as: its name for messages, and the decoding of the server's binary form.
struct ColumnType<Value>: Sendable {
    let name: String
    /// Returns nil when a value of the server's type (an OID) cannot be read as this type.
    let decode: @Sendable (_ type: UInt32, _ bytes: UnsafeRawBufferPointer) -> Value?
}

extension ColumnType<Bool> {
    static let bool = ColumnType(name: "bool") { type, bytes in
        type == TypeIdentifier.bool && bytes.count == 1 ? bytes[0] != 0 : nil
    }
}

extension ColumnType where Value: FixedWidthInteger & SendableMetatype {
    /// Returns any integer type that always fits: a narrower column is widened, a wider one is refused whatever its
    /// value.
    static func integer(_ name: String) -> ColumnType {
        ColumnType(name: name) { type, bytes in
            switch (type, bytes.count) {
            case (TypeIdentifier.int2, 2): Value(exactly: bytes.bigEndian(Int16.self))
            case (TypeIdentifier.int4, 4) where Value.bitWidth >= 32: Value(exactly: bytes.bigEndian(Int32.self))
            case (TypeIdentifier.oid, 4) where Value.bitWidth >= 64: Value(exactly: bytes.bigEndian(UInt32.self))
            case (TypeIdentifier.int8, 8) where Value.bitWidth >= 64: Value(exactly: bytes.bigEndian(Int64.self))
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
        guard type == TypeIdentifier.timestamptz, bytes.count == 8 else { return nil }
        let stored = bytes.bigEndian(Int64.self)
        if stored == .max || stored == .min { return stored }
        let (shifted, overflow) = stored.addingReportingOverflow(BinaryForm.epochOffset)
        return overflow ? Int64.max - 1 : shifted
    }
}

extension ColumnType<Double> {
    static let float8 = ColumnType(name: "float8") { type, bytes in
        switch (type, bytes.count) {
        case (TypeIdentifier.float8, 8): Double(bitPattern: bytes.bigEndian(UInt64.self))
        case (TypeIdentifier.float4, 4): Double(Float(bitPattern: bytes.bigEndian(UInt32.self)))
        default: nil
        }
    }
}

extension ColumnType<String> {
    static let text = ColumnType(name: "text") { type, bytes in
        if type == TypeIdentifier.uuid { return uuidText(bytes) }
        if type == TypeIdentifier.jsonb {
            guard bytes.first == 1 else { return nil }
            return String(validating: bytes.dropFirst(), as: UTF8.self)
        }
        return TypeIdentifier.isTextual(type) ? String(validating: bytes, as: UTF8.self) : nil
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
        type == TypeIdentifier.bytea ? Array(bytes) : nil
    }
    static let uuid = ColumnType(name: "uuid") { type, bytes in
        type == TypeIdentifier.uuid && bytes.count == 16 ? Array(bytes) : nil
    }
}

extension UnsafeRawBufferPointer {
    /// Returns the first bytes as a big-endian integer; the caller has checked that there are enough.
    func bigEndian<Integer: FixedWidthInteger>(_ type: Integer.Type) -> Integer {
        Integer(bigEndian: loadUnaligned(as: Integer.self))
    }
}
