/// One element of BER (X.690): its tag, and the range of its content among the bytes.
struct BERElement {
    static let integer: UInt8 = 0x02
    static let octetString: UInt8 = 0x04
    static let constructed: UInt8 = 0x20
    static let sequence: UInt8 = 0x30
    static let set: UInt8 = 0x31

    let tag: UInt8
    let content: Range<Int>
}

/// Steps over consecutive elements. It builds no tree, so an element that is not needed costs one step.
///
/// Lengths may be indefinite, as Xcode writes them. An element that claims more bytes than there are ends the walk.
struct BERCursor {
    /// The deepest nesting of elements of indefinite length. Receipts nest six; every level costs another pass.
    static let depthMax = 16

    private var at: Int
    private let end: Int

    /// Creates a cursor before the first element of `stretch`.
    init(_ stretch: Range<Int>) {
        at = stretch.lowerBound
        end = stretch.upperBound
    }

    /// Whether everything was read; if false after the last `next`, the rest is malformed.
    var isAtEnd: Bool { at == end }

    /// Returns the next element; nil at the end, or if the bytes are malformed.
    mutating func next(in bytes: [UInt8]) -> BERElement? {
        guard let (element, after) = Self.element(in: bytes, at: at, end: end, depth: 1) else { return nil }
        at = after
        return element
    }

    /// Returns the next element with `tag`, in one piece or in parts, and skips others.
    mutating func next(tagged tag: UInt8, in bytes: [UInt8]) -> BERElement? {
        while let element = next(in: bytes) {
            if element.tag | BERElement.constructed == tag | BERElement.constructed { return element }
        }
        return nil
    }

    private static func element(
        in bytes: [UInt8], at start: Int, end: Int, depth: Int
    ) -> (BERElement, after: Int)? {
        var at = start
        guard let tag = takeTag(in: bytes, &at, end), at < end else { return nil }
        if bytes[at] == 0x80 {
            guard tag & BERElement.constructed != 0, depth < depthMax else { return nil }
            return endOfContents(in: bytes, from: at + 1, end: end, depth: depth).map {
                (BERElement(tag: tag, content: (at + 1)..<$0), after: $0 + 2)
            }
        }
        guard let length = takeLength(in: bytes, &at, end), length <= end - at else { return nil }
        return (BERElement(tag: tag, content: at..<(at + length)), after: at + length)
    }

    /// Returns the position of the two zero bytes that end an element of indefinite length.
    private static func endOfContents(in bytes: [UInt8], from start: Int, end: Int, depth: Int) -> Int? {
        var at = start
        while end - at >= 2 {
            if bytes[at] == 0, bytes[at + 1] == 0 { return at }
            guard let (_, after) = element(in: bytes, at: at, end: end, depth: depth + 1) else { return nil }
            at = after
        }
        return nil
    }

    /// Takes the first byte of the tag. The number of a long tag is skipped; no element of a receipt has one.
    private static func takeTag(in bytes: [UInt8], _ at: inout Int, _ end: Int) -> UInt8? {
        guard at < end else { return nil }
        let tag = bytes[at]
        at += 1
        guard tag & 0x1F == 0x1F else { return tag }
        while at < end, bytes[at] & 0x80 != 0 { at += 1 }
        at += 1
        return at <= end ? tag : nil
    }

    /// Takes a definite length of at most seven bytes, more than any receipt needs.
    private static func takeLength(in bytes: [UInt8], _ at: inout Int, _ end: Int) -> Int? {
        guard at < end else { return nil }
        let first = bytes[at]
        at += 1
        guard first >= 0x80 else { return Int(first) }
        let count = Int(first & 0x7F)
        guard count <= 7, count <= end - at else { return nil }
        var length = 0
        for _ in 0..<count {
            length = length << 8 | Int(bytes[at])
            at += 1
        }
        return length
    }
}
