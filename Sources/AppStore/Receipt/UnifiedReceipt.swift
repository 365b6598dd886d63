/// Reads the app receipt of iOS 7 and later: attributes inside PKCS#7 signed data. It does not check the signature.
enum UnifiedReceipt {
    /// The tags from the outside in: content info, its content, signed data, its content info, its content.
    private static let wayToContent: [UInt8] = [0x30, 0xA0, 0x30, 0x30, 0xA0]
    /// The most octet strings that may wrap the attributes.
    private static let wrappingsMax = 4

    static func reading(of bytes: [UInt8]) -> LocalReading {
        guard let content = content(in: bytes, within: bytes.indices, way: wayToContent[...]) else {
            return .unreadable("a PKCS#7 structure that is cut short or damaged")
        }
        guard let octets = BEROctets(content, in: bytes), let attributes = ReceiptAttributes(in: unwrapped(octets))
        else {
            return .unreadable("PKCS#7 signed data without a receipt in it")
        }
        var receipt = LocalReceipt(form: .unified)
        guard receipt.read(attributes) > 0 else { return .unreadable("a receipt without a single attribute") }
        return .read(receipt)
    }

    /// Returns the element at the end of the path, past elements with the right tag that lead nowhere.
    private static func content(in bytes: [UInt8], within stretch: Range<Int>, way: ArraySlice<UInt8>) -> BERElement? {
        var cursor = BERCursor(stretch)
        guard let tag = way.first else { return cursor.next(in: bytes) }
        while let element = cursor.next(tagged: tag, in: bytes) {
            if let found = content(in: bytes, within: element.content, way: way.dropFirst()) { return found }
        }
        return nil
    }

    /// Removes the octet strings that some signers wrap around their content once more.
    private static func unwrapped(_ octets: BEROctets) -> BEROctets {
        var octets = octets
        for _ in 0..<wrappingsMax {
            var cursor = octets.cursor
            guard let inner = cursor.next(in: octets.bytes), let content = BEROctets(inner, in: octets.bytes) else {
                return octets
            }
            octets = content
        }
        return octets
    }
}

extension LocalReceipt {
    /// Reads attributes, of duplicate ones the last; returns how many are readable.
    fileprivate mutating func read(_ attributes: ReceiptAttributes) -> Int {
        var attributes = attributes
        var readable = 0
        while let (type, value) = attributes.next() {
            readable += 1
            switch type {
            case 0: environment = value.text ?? environment
            case 2:
                bundleID = value.text ?? bundleID
                bundleAttributes += 1
            case 12: createdAt = value.instant ?? createdAt
            case 17: readPurchase(value)
            default: continue
            }
        }
        unreadableParts += attributes.unreadable
        return readable
    }

    private mutating func readPurchase(_ value: BEROctets) {
        guard purchases.count < Self.purchasesMax, var attributes = ReceiptAttributes(in: value) else {
            unreadableParts += 1
            return
        }
        var purchase = LocalPurchase(originalTransactionID: "")
        var original: String?
        while let (type, value) = attributes.next() {
            switch type {
            case 1702: purchase.productID = value.text ?? purchase.productID
            case 1703: purchase.transactionID = value.identifier ?? purchase.transactionID
            case 1705: original = value.identifier ?? original
            case 1708: purchase.expiresAt = value.instant ?? purchase.expiresAt
            case 1711: purchase.webOrderLineItemID = value.identifier ?? purchase.webOrderLineItemID
            case 1712: purchase.cancelledAt = value.instant ?? purchase.cancelledAt
            default: continue
            }
        }
        unreadableParts += attributes.unreadable
        guard let original = original ?? purchase.transactionID else {
            unreadableParts += 1
            return
        }
        purchase.originalTransactionID = original
        purchases.append(purchase)
    }
}

/// The attributes of a receipt, or of one purchase in it: each has a number that identifies it, and a value (Apple:
/// "Validating receipts on the device", the field tables of the receipt).
struct ReceiptAttributes {
    private let octets: BEROctets
    private var cursor: BERCursor
    private(set) var unreadable = 0

    /// Starts before the first attribute; nil if `octets` contain no set of attributes.
    init?(in octets: BEROctets) {
        var outer = octets.cursor
        guard let set = outer.next(in: octets.bytes), set.tag == BERElement.set || set.tag == BERElement.sequence else {
            return nil
        }
        self.octets = octets
        cursor = BERCursor(set.content)
    }

    /// Returns the next readable attribute. An unreadable one does not lose any other, unless its length is false.
    mutating func next() -> (type: Int64, value: BEROctets)? {
        while let element = cursor.next(in: octets.bytes) {
            if let attribute = attribute(element) { return attribute }
            unreadable += 1
        }
        if !cursor.isAtEnd {
            unreadable += 1
            cursor = BERCursor(0..<0)
        }
        return nil
    }

    private func attribute(_ element: BERElement) -> (type: Int64, value: BEROctets)? {
        guard element.tag == BERElement.sequence else { return nil }
        var parts = BERCursor(element.content)
        guard let number = parts.next(in: octets.bytes), let type = octets.bytes.integer(number),
            let element = parts.next(tagged: BERElement.octetString, in: octets.bytes),
            let value = BEROctets(element, in: octets.bytes)
        else { return nil }
        return (type, value)
    }
}

extension BEROctets {
    private var first: BERElement? {
        var cursor = cursor
        return cursor.next(in: bytes)
    }

    /// The text in the content; nil if it is empty, too long for a receipt, or has invisible characters.
    var text: String? {
        guard let element = first else { return nil }
        switch element.tag {
        // UTF8String, NumericString, PrintableString, IA5String, VisibleString.
        case 0x0C, 0x12, 0x13, 0x16, 0x1A: return bytes.visibleText(element.content)
        default: return nil
        }
    }

    /// An id, which Apple writes as text or as a number; nil if it is empty or 0.
    var identifier: String? {
        guard let element = first, element.tag == BERElement.integer else { return text }
        return bytes.integer(element).flatMap { $0 > 0 ? String($0) : nil }
    }

    /// An instant in milliseconds since 1970; nil if it is empty or not a date.
    var instant: Int64? {
        guard let element = first else { return nil }
        switch element.tag {
        case 0x0C, 0x13, 0x16, 0x1A: return LenientInstant.milliseconds(withOffset: bytes[element.content])
        default: return nil
        }
    }
}

extension [UInt8] {
    /// The most bytes of a text in a receipt that is worth keeping.
    static let visibleTextMax = 1024

    /// Returns the UTF-8 text of a range; nil if empty, broken, beyond `visibleTextMax`, or with control characters.
    func visibleText(_ stretch: Range<Int>) -> String? {
        guard (1...Self.visibleTextMax).contains(stretch.count) else { return nil }
        let text = self[stretch]
        guard text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
        return String(validating: text, as: UTF8.self)
    }

    /// Returns the value of an INTEGER of at most eight bytes.
    func integer(_ element: BERElement) -> Int64? {
        guard element.tag == BERElement.integer, (1...8).contains(element.content.count) else { return nil }
        let negative = self[element.content.lowerBound] >= 0x80
        return self[element.content].reduce(negative ? -1 : 0) { $0 << 8 | Int64($1) }
    }
}

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
/// Lengths may be indefinite, as Xcode writes them. An element that claims more bytes than there are ends the walk.
struct BERCursor {
    /// The deepest nesting of elements of indefinite length. Receipts nest six; every level costs another pass.
    static let depthMax = 16

    private var at: Int
    private let end: Int

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

/// The content of an octet string: a range of the receipt, or joined bytes if it came in parts.
struct BEROctets {
    /// The deepest nesting of parts; Xcode nests one level.
    static let depthMax = 4

    let bytes: [UInt8]
    let stretch: Range<Int>

    /// Reads the content of `element`, a range of `bytes`; nil if it or one of its parts is not an octet string.
    init?(_ element: BERElement, in bytes: [UInt8]) {
        switch element.tag {
        case BERElement.octetString: (self.bytes, stretch) = (bytes, element.content)
        case BERElement.octetString | BERElement.constructed:
            var joined: [UInt8] = []
            joined.reserveCapacity(element.content.count)
            guard Self.join(element.content, in: bytes, to: &joined, depth: 1) else { return nil }
            (self.bytes, stretch) = (joined, joined.indices)
        default: return nil
        }
    }

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
