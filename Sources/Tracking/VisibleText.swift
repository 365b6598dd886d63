extension String {
    /// The text with everything visible that a terminal would obey, as `\u{1b}`: control characters, ends of lines, and marks
    /// that turn the direction of writing. What others sent forges no line and moves no cursor.
    package var visible: String {
        guard unicodeScalars.contains(where: \.isObeyed) else { return self }
        return unicodeScalars.map { $0.isObeyed ? "\\u{\(String($0.value, radix: 16))}" : String($0) }.joined()
    }

    /// The same line by line: ends of lines and tabs stay.
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
