import Foundation

/// A report's text as one statement.
///
/// Reports are written for psql, with its variables. This type supports the few psql features that reports use. Lines
/// that begin with a backslash are dropped, but a `\set` in them gives a default. `:'name'` becomes the value as a
/// literal, as in psql. A parameter would not do: the planner knows a literal, and a date is read once and not for each
/// row.
struct ReportStatement: Sendable, Hashable {
    /// The text without psql's lines and comments, still with variables.
    private let text: String
    /// The variables in the order of their first use.
    let variables: [String]
    /// Values for variables that are not set.
    let defaults: [String: String]

    init(_ file: String) {
        var defaults: [String: String] = [:]
        var lines: [Substring] = []
        for line in file.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            guard line.hasPrefix("\\") else {
                if !line.hasPrefix("--") { lines.append(line) }
                continue
            }
            let words = line.split(separator: " ").drop { $0 != "\\set" }.dropFirst().prefix { !$0.hasPrefix("\\") }
            guard let name = words.first else { continue }
            defaults[String(name)] = Self.unquoted(words.dropFirst().joined(separator: " "))
        }
        let body = lines.joined(separator: "\n").trimmingCharacters(in: .whitespacesAndNewlines)
        var variables: [String] = []
        for match in body.matches(of: Self.variable) where match.output.colon.isEmpty {
            let name = String(match.output.name)
            if !variables.contains(name) { variables.append(name) }
        }
        text = body.hasSuffix(";") ? String(body.dropLast()) : body
        self.variables = variables
        self.defaults = defaults
    }

    /// Returns the statement with the variables' literals, which PostgreSQL made, in the order of `variables`.
    func sql(literals: [String]) -> String {
        let literals = Dictionary(uniqueKeysWithValues: zip(variables, literals))
        return text.replacing(Self.variable) { match in
            // Two colons are a cast.
            guard match.output.colon.isEmpty, let literal = literals[String(match.output.name)] else {
                return String(match.output.0)
            }
            return literal
        }
    }

    /// Returns the variables' values in their order. Throws when a given value is not a variable of the report, or a
    /// value is missing.
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

    private static var variable: Regex<(Substring, colon: Substring, name: Substring)> {
        #/(?<colon>:?):'(?<name>[A-Za-z_][A-Za-z0-9_]*)'/#
    }

    private static func unquoted(_ text: String) -> String {
        guard text.count >= 2, text.hasPrefix("'"), text.hasSuffix("'") else { return text }
        return String(text.dropFirst().dropLast())
    }
}
