/// How many pieces of a product one purchase has: 1 to 10, as Apple allows.
package struct PurchaseQuantity: Codable, Sendable, Hashable {
    /// One piece.
    package static let one = PurchaseQuantity(unchecked: 1)
    private static let allowed = 1...10

    /// The number of pieces.
    package let count: Int

    /// Creates a quantity; nil for a number that Apple refuses.
    package init?(_ count: Int) {
        guard Self.allowed.contains(count) else { return nil }
        self.count = count
    }

    private init(unchecked count: Int) {
        self.count = count
    }

    /// Reads a number.
    package init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        guard let quantity = PurchaseQuantity(try value.decode(Int.self)) else {
            throw DecodingError.dataCorruptedError(in: value, debugDescription: "a purchase has 1 to 10 pieces")
        }
        self = quantity
    }

    /// Writes the number.
    package func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(count)
    }
}
