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
    static func array(of element: UInt32, _ values: [[UInt8]?]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(20 + values.reduce(0) { $0 + 4 + ($1?.count ?? 0) })
        append(Int32(values.isEmpty ? 0 : 1), to: &bytes)
        append(Int32(values.contains { $0 == nil } ? 1 : 0), to: &bytes)
        append(element, to: &bytes)
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
