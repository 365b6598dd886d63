/// The key of a stored receipt.
package struct ReceiptID: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The number.
    package let number: Int64

    /// Creates a receipt's key from its number.
    package init(_ number: Int64) {
        self.number = number
    }

    /// The number in decimal digits.
    package var description: String { String(number) }

    /// Orders by number.
    package static func < (left: ReceiptID, right: ReceiptID) -> Bool { left.number < right.number }
}
