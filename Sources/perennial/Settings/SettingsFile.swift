/// The `KEY=VALUE` lines of a settings file.
struct SettingsFile: Sendable {
    /// The most bytes of a settings file.
    static let bytesMax = 1 << 20

    /// Values by key; of equal keys the last counts.
    private(set) var values: [String: String] = [:]
    /// Lines that are neither `KEY=VALUE` nor a comment, one sentence each.
    private(set) var mistakes: [String] = []
    /// Keys that are not read, one sentence each.
    private(set) var warnings: [String] = []

    /// Reads the text of the file called `name`.
    ///
    /// Empty lines and lines that start with `#` are skipped. `export` before a key and quotes around a value are
    /// dropped, so that a shell can read the same file.
    init(_ text: String, name: String) {
        let known = Set(SettingName.allCases.map(\.rawValue) + LibpqVariable.allCases.map(\.rawValue))
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            var line = Self.trimmed(line)
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            if line.hasPrefix("export ") { line = Self.trimmed(line.dropFirst("export ".count)) }
            guard let equals = line.firstIndex(of: "="), equals > line.startIndex else {
                mistakes.append("\(name), line \(index + 1): write KEY=VALUE, or # before a comment.")
                continue
            }
            let key = String(Self.trimmed(line[..<equals]))
            values[key] = Self.unquoted(Self.trimmed(line[line.index(after: equals)...]))
            if !known.contains(key) {
                let hint = SettingName.nearest(to: key).map { "did you mean \($0)?" } ?? "it is ignored."
                warnings.append("\(name), line \(index + 1): \(key) is unknown; \(hint)")
            }
        }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop(while: \.isWhitespace)
        guard let end = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return start[...end]
    }

    private static func unquoted(_ value: Substring) -> String {
        guard value.count >= 2, let quote = value.first, quote == value.last, quote == "\"" || quote == "'" else {
            return String(value)
        }
        return String(value.dropFirst().dropLast())
    }
}
