import Foundation

/// A report's text as one statement with parameters.
///
/// Reports are written for psql, with its variables. This understands the little of it that reports use: lines that
/// begin with a backslash are dropped, except that `\set` gives a default, and `:'name'` becomes a parameter.
struct ReportStatement: Sendable, Hashable {
    /// The statement, with `$1::text` and so on.
    let sql: String
    /// The variables in the order of their parameters.
    let variables: [String]
    /// Values for variables nobody sets.
    let defaults: [String: String]

    init(_ text: String) {
        var defaults: [String: String] = [:]
        var lines: [Substring] = []
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            guard line.hasPrefix("\\") else {
                if !line.hasPrefix("--") { lines.append(line) }
                continue
            }
            let words = line.split(separator: " ", maxSplits: 2)
            guard words.first == "\\set", words.count > 1 else { continue }
            defaults[String(words[1])] = words.count > 2 ? Self.unquoted(words[2]) : ""
        }
        var variables: [String] = []
        let body = lines.joined(separator: "\n").trimmingCharacters(in: .whitespacesAndNewlines)
        let replaced = body.replacing(#/(?<colon>:?):'(?<name>[A-Za-z_][A-Za-z0-9_]*)'/#) { match -> String in
            // Two colons are a cast.
            guard match.output.colon.isEmpty else { return String(match.output.0) }
            let name = String(match.output.name)
            let index = variables.firstIndex(of: name) ?? variables.count
            if index == variables.count { variables.append(name) }
            return "$\(index + 1)::text"
        }
        sql = replaced.hasSuffix(";") ? String(replaced.dropLast()) : replaced
        self.variables = variables
        self.defaults = defaults
    }

    /// The parameters' values. Throws when a value is given that the report does not read, or one is missing.
    func values(_ given: [String: String], report: String) throws -> [String] {
        if let stray = given.keys.sorted().first(where: { !variables.contains($0) }) {
            let known = variables.isEmpty ? "it has no variables" : "it has \(variables.joined(separator: ", "))"
            throw Failure("The report \(report) does not read \(stray); \(known).")
        }
        return try variables.map { name in
            guard let value = given[name] ?? defaults[name] else {
                throw Failure("The report \(report) needs a value for \(name); give --set \(name)=VALUE.")
            }
            return value
        }
    }

    private static func unquoted(_ text: Substring) -> String {
        let text = text.trimmingCharacters(in: .whitespaces)
        guard text.count >= 2, text.hasPrefix("'"), text.hasSuffix("'") else { return text }
        return String(text.dropFirst().dropLast())
    }
}
