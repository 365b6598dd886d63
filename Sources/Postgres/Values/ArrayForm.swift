extension ColumnType {
    /// A one-dimensional array of this type, element by element; a NULL element is nil.
    ///
    /// Nil when the bytes are not an array, have more than one dimension, or contain another type. The header names the
    /// element type, so the column's own OID is not needed (the OID of an array of enums is unknown here).
    var elements: ColumnType<[Value?]> {
        ColumnType<[Value?]>(name: "\(name)[]") { _, bytes in readElements(from: bytes) }
    }

    private func readElements(from bytes: UnsafeRawBufferPointer) -> [Value?]? {
        guard bytes.count >= 12 else { return nil }
        let dimensions = bytes.bigEndian(Int32.self)
        let type = bytes.tail(from: 8).bigEndian(UInt32.self)
        if dimensions == 0 { return bytes.count == 12 ? [] : nil }
        guard dimensions == 1, bytes.count >= 20 else { return nil }
        let count = Int(bytes.tail(from: 12).bigEndian(Int32.self))
        guard count >= 0, count <= bytes.count / 4 else { return nil }

        var values: [Value?] = []
        values.reserveCapacity(count)
        var offset = 20
        for _ in 0..<count {
            guard bytes.count - offset >= 4 else { return nil }
            let length = Int(bytes.tail(from: offset).bigEndian(Int32.self))
            offset += 4
            if length < 0 {
                values.append(nil)
                continue
            }
            guard bytes.count - offset >= length else { return nil }
            let element = UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + length)])
            guard let value = decode(type, element) else { return nil }
            values.append(value)
            offset += length
        }
        return offset == bytes.count ? values : nil
    }
}

extension UnsafeRawBufferPointer {
    func tail(from offset: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[offset...])
    }
}
