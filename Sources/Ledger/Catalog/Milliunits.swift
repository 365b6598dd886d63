import Foundation

/// A price in thousandths of the currency's unit. Decimal text is converted exactly, without binary fractions.
package struct Milliunits: Sendable, Hashable {
    /// The price in thousandths: 4.99 is 4990.
    package let count: Int64

    private static let wholeDigitsMax = 12

    /// Creates a price from its thousandths.
    package init(_ count: Int64) {
        self.count = count
    }

    /// Reads digits with an optional fraction, like `4.99`. Returns nil for anything else, for more than 12 digits
    /// before the point, and for parts of a thousandth.
    package init?(decimal text: String) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, (1...Self.wholeDigitsMax).contains(whole.utf8.count), Self.areDigits(whole)
        else {
            return nil
        }
        var fraction = parts.count > 1 ? parts[1] : "0"
        guard !fraction.isEmpty, Self.areDigits(fraction) else { return nil }
        while fraction.last == "0" { fraction.removeLast() }
        guard fraction.utf8.count <= 3 else { return nil }
        let padded = fraction + String(repeating: "0", count: 3 - fraction.utf8.count)
        guard let count = Int64(whole + padded) else { return nil }
        self.count = count
    }

    /// The shortest decimal text, with at least two decimals.
    package var decimal: String {
        let (whole, rest) = count.magnitude.quotientAndRemainder(dividingBy: 1_000)
        var decimals = String(String(rest + 1_000).dropFirst())
        if decimals.hasSuffix("0") { decimals.removeLast() }
        return "\(count < 0 ? "-" : "")\(whole).\(decimals)"
    }

    private static func areDigits(_ text: Substring) -> Bool {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}

extension Milliunits: Decodable {
    /// Decodes a price from a JSON number or a string with a decimal.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        var text = ""
        do {
            text = try container.decode(String.self)
        } catch DecodingError.typeMismatch {
            do {
                text = try container.decode(Decimal.self).description
            } catch let error as DecodingError {
                guard case .dataCorrupted = error else { throw error }
            } catch {
                // A number that is too large for the decoder is an error of its own.
            }
        }
        guard let price = Milliunits(decimal: text) else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: container.codingPath,
                    debugDescription: "'\(text)' is no price; write 4.99, with at most 3 decimals",
                    underlyingError: LedgerError(
                        .invalid, "is a price like 4.99, from 0 to 999999999999.999 with at most 3 decimals.")))
        }
        self = price
    }
}
