/// The key of a stored receipt.
public struct ReceiptID: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The number.
    public let number: Int64

    /// A receipt's key from its number.
    public init(_ number: Int64) {
        self.number = number
    }

    /// The number in digits.
    public var description: String { String(number) }

    /// Orders by number.
    public static func < (left: ReceiptID, right: ReceiptID) -> Bool { left.number < right.number }
}
