/// A reader for the JSON that nearly every client sends: one object of plain strings and booleans. A full parser
/// handles everything else, so this one reports no errors.
enum FlatJSON {
    enum Value {
        case text([UInt8])
        case boolean(Bool)
    }

    struct Member {
        let key: String
        let value: Value
    }

    /// Returns the members; nil when the body needs a full parser.
    static func members(of bytes: [UInt8]) -> [Member]? {
        bytes.withUnsafeBufferPointer { buffer in
            var scanner = Scanner(bytes: buffer)
            return scanner.object()
        }
    }

    private struct Scanner {
        let bytes: UnsafeBufferPointer<UInt8>
        var position = 0

        init(bytes: UnsafeBufferPointer<UInt8>) {
            self.bytes = bytes
        }

        mutating func object() -> [Member]? {
            var members: [Member] = []
            guard take("{") else { return nil }
            repeat {
                guard let key = text(), take(":"), let value = value() else { return nil }
                members.append(Member(key: String(decoding: key, as: UTF8.self), value: value))
            } while take(",")
            guard take("}") else { return nil }
            skipSpace()
            return position == bytes.count ? members : nil
        }

        private mutating func value() -> Value? {
            skipSpace()
            if follows("true") { return .boolean(true) }
            if follows("false") { return .boolean(false) }
            return text().map { .text($0) }
        }

        /// Reads a string that has no escapes except `\/`, which some encoders write for every slash of Base64.
        private mutating func text() -> [UInt8]? {
            guard take("\"") else { return nil }
            let start = position
            var slashes = 0
            while position < bytes.count {
                let byte = bytes[position]
                if byte == UInt8(ascii: "\"") { break }
                if byte == UInt8(ascii: "\\") {
                    guard position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "/") else { return nil }
                    slashes += 1
                    position += 1
                } else if byte < 0x20 || byte >= 0x80 {
                    return nil
                }
                position += 1
            }
            guard position < bytes.count else { return nil }
            let found = bytes[start..<position]
            position += 1
            return slashes == 0 ? Array(found) : found.filter { $0 != UInt8(ascii: "\\") }
        }

        private mutating func take(_ character: Unicode.Scalar) -> Bool {
            skipSpace()
            guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
            position += 1
            return true
        }

        private mutating func follows(_ word: StaticString) -> Bool {
            let length = word.utf8CodeUnitCount
            guard position + length <= bytes.count else { return false }
            let isThere = word.withUTF8Buffer { $0.elementsEqual(bytes[position..<(position + length)]) }
            if isThere { position += length }
            return isThere
        }

        private static func isSpace(_ byte: UInt8) -> Bool {
            byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
        }

        private mutating func skipSpace() {
            while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
        }
    }
}
