/// A customer's id as PostgreSQL compares it, byte by byte: Swift takes texts for equal that Unicode says are written alike,
/// such as an é of one character and one of two, and those are two customers.
public struct ExactName: Hashable, Sendable, ExpressibleByStringInterpolation {
    /// The operator's own id of the customer.
    public let text: String

    /// A name.
    public init(_ text: String) {
        self.text = text
    }

    /// A name that stands in the source.
    public init(stringLiteral text: String) { self.init(text) }

    /// Whether the bytes are the same.
    public static func == (left: ExactName, right: ExactName) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}
