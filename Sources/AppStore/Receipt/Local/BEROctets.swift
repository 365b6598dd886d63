/// The content of an octet string: a range of the receipt, or joined bytes if it came in parts.
struct BEROctets {
    /// The deepest nesting of parts; Xcode nests one level.
    static let depthMax = 4

    let bytes: [UInt8]
    let stretch: Range<Int>

    private init(_ bytes: [UInt8], _ stretch: Range<Int>) {
        self.bytes = bytes
        self.stretch = stretch
    }

    /// Reads the content of `element`, a range of `bytes`; nil if it or one of its parts is not an octet string.
    init?(_ element: BERElement, in bytes: [UInt8]) {
        switch element.tag {
        case BERElement.octetString:
            self.init(bytes, element.content)
        case BERElement.octetString | BERElement.constructed:
            var joined: [UInt8] = []
            joined.reserveCapacity(element.content.count)
            guard Self.join(element.content, in: bytes, to: &joined, depth: 1) else { return nil }
            self.init(joined, joined.indices)
        default: return nil
        }
    }

    /// A cursor before the first element of the content.
    var cursor: BERCursor { BERCursor(stretch) }

    private static func join(_ parts: Range<Int>, in bytes: [UInt8], to joined: inout [UInt8], depth: Int) -> Bool {
        var cursor = BERCursor(parts)
        while let part = cursor.next(in: bytes) {
            switch part.tag {
            case BERElement.octetString: joined.append(contentsOf: bytes[part.content])
            case BERElement.octetString | BERElement.constructed:
                guard depth < depthMax, join(part.content, in: bytes, to: &joined, depth: depth + 1) else {
                    return false
                }
            default: return false
            }
        }
        return cursor.isAtEnd
    }
}
