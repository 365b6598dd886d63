extension String {
    /// The longest text from Apple that a column keeps, in Unicode scalars. A PostgreSQL index refuses more than 2,704
    /// bytes, and two such texts make one key. Apple's own texts are a fifth of that.
    static let storableScalarsMax = 300

    /// The text in a form a column can store: U+FFFD replaces U+0000, and a text that is too long is cut.
    ///
    /// One text that cannot be stored would make every settlement of its answer fail. The observation keeps Apple's
    /// text.
    var storable: String {
        let isShort = utf8.count <= Self.storableScalarsMax || unicodeScalars.count <= Self.storableScalarsMax
        if isShort, !utf8.contains(0) { return self }
        var text = UnicodeScalarView()
        for scalar in unicodeScalars.prefix(Self.storableScalarsMax) {
            text.append(scalar == "\u{0}" ? "\u{FFFD}" : scalar)
        }
        return String(text)
    }
}
