import CLibPQ

/// A connection string, parsed by libpq's own parser so that both agree about every form.
struct ConnectionOptions: Sendable {
    private var values: [String: String] = [:]

    /// Parses a URI or keyword string; an empty string is valid and means the environment.
    /// - Throws: `.cannotConnect`; its message never quotes the string, because a mistyped URI may put the password in
    ///   any field.
    init(parsing text: String) throws(DatabaseError) {
        var complaint: UnsafeMutablePointer<CChar>?
        guard let parsed = PQconninfoParse(text, &complaint) else {
            let reason = complaint.map { String(cString: $0) } ?? "out of memory"
            PQfreemem(complaint)
            throw .invalidConnectionString(hidingQuotedText(in: oneLine(reason)))
        }
        defer { PQconninfoFree(parsed) }
        var option = parsed
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        // libpq would take everything after the first @ as a host name and then print it in its error.
        if let host = values["host"], host.contains("@") {
            throw .invalidConnectionString(
                "the host contains an @; percent-encode special characters of the password (@ is %40)")
        }
        let ports = values["port"]?.split(separator: ",") ?? []
        guard ports.allSatisfy({ UInt16($0) != nil }) else {
            throw .invalidConnectionString("the port is not a number from 1 to 65535")
        }
    }

    /// The value of a libpq keyword (`host`, `dbname`, …); nil when the string does not set it.
    subscript(keyword: String) -> String? {
        get { values[keyword] }
        set { values[keyword] = newValue }
    }

    /// The options as one keyword string, every value quoted.
    var keywordString: String {
        values.sorted { $0.key < $1.key }.map { "\($0.key)=\(Self.quoted($0.value))" }.joined(separator: " ")
    }

    private static func quoted(_ value: String) -> String {
        var text = "'"
        for character in value {
            if character == "'" || character == "\\" { text.append("\\") }
            text.append(character)
        }
        return text + "'"
    }
}

/// Returns a libpq message as one sentence without a final full stop: it may have several lines and ends in a line
/// feed.
func oneLine(_ text: String) -> String {
    var line = text.split(whereSeparator: { $0.isNewline }).map { line in
        String(line.drop(while: { $0 == " " || $0 == "\t" }))
    }.joined(separator: "; ")
    if line.hasSuffix(".") { line.removeLast() }
    return line
}

/// Returns the text with every double-quoted part replaced, for messages that may quote a secret or a value.
func hidingQuotedText(in text: String) -> String {
    text.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
        .map { $0.offset.isMultiple(of: 2) ? String($0.element) : "…" }.joined(separator: "\"")
}
