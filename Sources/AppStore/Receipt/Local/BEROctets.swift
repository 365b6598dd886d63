/// The content of an octet string: a stretch of the receipt, or bytes put together when it came in parts.
struct BEROctets {
    /// How deep parts may be nested; Xcode nests one.
    static let depthMax = 4

    let bytes: [UInt8]
    let stretch: Range<Int>

    private init(_ bytes: [UInt8], _ stretch: Range<Int>) {
        self.bytes = bytes
        self.stretch = stretch
    }

    /// The content of `element`, which stands in `bytes`; nil when it is no octet string, or its parts are none.
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

    /// Before the first element in here.
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
