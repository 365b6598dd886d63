/// A price as exact decimal text.
enum PriceText {
    /// Returns thousandths of the currency's unit: `4.99` is 4990. Nil when the text is not a price, or has a fourth
    /// decimal.
    static func milliunits(_ text: String) -> Int64? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = parts.first, parts.count <= 2, isDigits(whole) else { return nil }
        var decimals = ""
        if parts.count == 2 {
            guard isDigits(parts[1]) else { return nil }
            let significant = parts[1].prefix(3)
            guard parts[1].dropFirst(3).allSatisfy({ $0 == "0" }) else { return nil }
            decimals = String(significant)
        }
        return Int64(whole + decimals + String(repeating: "0", count: 3 - decimals.count))
    }

    /// Returns the shortest decimal text of thousandths, with at least two decimals.
    static func text(milliunits: Int64) -> String {
        let (whole, rest) = milliunits.magnitude.quotientAndRemainder(dividingBy: 1_000)
        var decimals = String(String(rest + 1_000).dropFirst())
        if decimals.hasSuffix("0") { decimals.removeLast() }
        return "\(milliunits < 0 ? "-" : "")\(whole).\(decimals)"
    }

    private static func isDigits(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
