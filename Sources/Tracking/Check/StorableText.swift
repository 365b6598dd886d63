extension String {
    /// The longest text of Apple's that is kept in a column, in Unicode scalars: an index of PostgreSQL refuses more than
    /// 2,704 bytes, and two such texts make one key. Apple's own texts are a fifth of that.
    static let storableScalarsMax = 300

    /// The text as a column can hold it: U+FFFD in the place of U+0000, and cut where it is too long.
    ///
    /// One text that cannot be stored would make every settlement of its answer fail. The observation keeps what Apple wrote.
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
