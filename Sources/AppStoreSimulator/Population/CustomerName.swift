/// The app's own user ids: `c000017`, and `c000017b` for a second customer on the same Apple account.
enum CustomerName {
    static func first(_ index: Int) -> String {
        let digits = String(index)
        return "c" + String(repeating: "0", count: max(0, 6 - digits.count)) + digits
    }

    static func second(_ index: Int) -> String { first(index) + "b" }

    /// Returns the index in a name; nil for any other text.
    static func index(of name: String) -> Int? {
        let digits = name.hasSuffix("b") ? name.dropFirst().dropLast() : name.dropFirst()
        guard name.hasPrefix("c"), let index = Int(digits), index >= 0, [first(index), second(index)].contains(name)
        else { return nil }
        return index
    }
}
