/// The attributes of a receipt, or of one purchase in it: each has a number that identifies it, and a value.
///
/// Apple: "Validating receipts on the device", the field tables of the receipt.
struct ReceiptAttributes {
    private let octets: BEROctets
    private var cursor: BERCursor
    /// The number of attributes skipped so far.
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
            let value = parts.next(tagged: BERElement.octetString, in: octets.bytes)
        else { return nil }
        return BEROctets(value, in: octets.bytes).map { (type, $0) }
    }
}

extension BEROctets {
    /// The text in the content; nil if it is empty, too long for a receipt, or has invisible characters.
    var text: String? {
        var cursor = cursor
        guard let element = cursor.next(in: bytes) else { return nil }
        switch element.tag {
        // UTF8String, NumericString, PrintableString, IA5String, VisibleString.
        case 0x0C, 0x12, 0x13, 0x16, 0x1A: return bytes.visibleText(element.content)
        default: return nil
        }
    }

    /// An id, which Apple writes as text or as a number; nil if it is empty or 0.
    var identifier: String? {
        var cursor = cursor
        guard let element = cursor.next(in: bytes) else { return nil }
        guard element.tag == BERElement.integer else { return text }
        return bytes.integer(element).flatMap { $0 > 0 ? String($0) : nil }
    }

    /// An instant in milliseconds since 1970; nil if it is empty or not a date.
    var instant: Int64? {
        var cursor = cursor
        guard let element = cursor.next(in: bytes) else { return nil }
        switch element.tag {
        case 0x0C, 0x13, 0x16, 0x1A: return LenientInstant.milliseconds(withOffset: bytes[element.content])
        default: return nil
        }
    }
}

extension [UInt8] {
    /// The most bytes of a text in a receipt that is worth keeping.
    static let visibleTextMax = 1024

    /// Returns the UTF-8 text of a range; nil if it is empty, broken or longer than `visibleTextMax`, or has control
    /// characters.
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
