extension BinaryInteger {
    /// The number with what it counts: `1 line`, `2 lines`.
    func of(_ one: String, _ many: String) -> String { "\(self) \(self == 1 ? one : many)" }
}
