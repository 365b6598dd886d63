extension String {
    /// The text with everything that a terminal would obey made visible, as `\u{1b}`: control characters, line ends,
    /// and marks that change the writing direction. Foreign text can forge no line and move no cursor.
    package var visible: String {
        guard unicodeScalars.contains(where: \.isObeyed) else { return self }
        return unicodeScalars.map { $0.isObeyed ? "\\u{\(String($0.value, radix: 16))}" : String($0) }.joined()
    }

    /// The same for several lines: line ends and tabs stay.
    package var visibleLines: String {
        guard unicodeScalars.contains(where: { $0.isObeyed && !$0.isLayout }) else { return self }
        return unicodeScalars.map { $0.isObeyed && !$0.isLayout ? String($0).visible : String($0) }.joined()
    }
}

extension Unicode.Scalar {
    /// Whether a terminal obeys it instead of showing it: controls of ECMA-48, and the marks of Unicode's annex 9.
    fileprivate var isObeyed: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        case .format: (0x202A...0x202E).contains(value) || (0x2066...0x2069).contains(value)
        default: false
        }
    }

    fileprivate var isLayout: Bool { self == "\n" || self == "\t" }
}

extension BinaryInteger {
    /// Returns the number with its noun: `1 line`, `2 lines`.
    package func of(_ one: String, _ many: String) -> String { "\(self) \(self == 1 ? one : many)" }
}
