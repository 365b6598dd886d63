extension BinaryInteger {
    /// Returns the number with its noun: `1 line`, `2 lines`.
    func of(_ one: String, _ many: String) -> String { "\(self) \(self == 1 ? one : many)" }
}
