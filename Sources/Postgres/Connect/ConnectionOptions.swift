import CLibPQ

/// A connection string, parsed by libpq's own parser so that both agree about every form.
struct ConnectionOptions: Sendable {
    /// The values that the string sets, by libpq's keywords (`host`, `dbname`, …).
    var values: [String: String]

    /// Parses a URI or keyword string; an empty string is valid and means the environment.
    /// - Throws: `.cannotConnect`; its message never quotes the string: a mistyped URI may put the password anywhere.
    init(parsing text: String) throws(DatabaseError) {
        var complaint: UnsafeMutablePointer<CChar>?
        guard let parsed = PQconninfoParse(text, &complaint) else {
            let reason = complaint.map { String(cString: $0) } ?? "out of memory"
            PQfreemem(complaint)
            throw .invalidConnectionString(hidingQuotedText(in: oneLine(reason)))
        }
        defer { PQconninfoFree(parsed) }
        values = Self.values(of: parsed)
        // libpq ends a password at its first @ or / and would print the rest as the name of a host or a database.
        guard values["host"]?.contains("@") != true, !Self.pathHoldsAt(text) else {
            throw .invalidConnectionString("an @ stands in the host or behind it")
        }
        let ports = values["port"]?.split(separator: ",") ?? []
        guard ports.allSatisfy({ UInt16($0) != nil }) else {
            throw .invalidConnectionString("the port is not a number from 1 to 65535")
        }
    }

    /// Returns the values that libpq's list of options sets, by their keywords.
    static func values(of list: UnsafeMutablePointer<PQconninfoOption>) -> [String: String] {
        var values: [String: String] = [:]
        var option = list
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        return values
    }

    /// Whether a URI has an unencoded @ between the slash behind its host and its parameters.
    private static func pathHoldsAt(_ text: String) -> Bool {
        guard let scheme = text.firstRange(of: "://") else { return false }
        let rest = text[scheme.upperBound...].drop { $0 != "@" && $0 != "/" }
        return rest.dropFirst(rest.first == "@" ? 1 : 0).prefix { $0 != "?" }.drop { $0 != "/" }.contains("@")
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

/// Returns a libpq message, which may have several lines, as one sentence without a final full stop.
func oneLine(_ text: String) -> String {
    var line = text.split(whereSeparator: { $0.isNewline }).map { line in
        String(line.drop(while: { $0 == " " || $0 == "\t" }))
    }.joined(separator: "; ")
    if line.hasSuffix(".") { line.removeLast() }
    return line
}

/// Returns the text without what is between its first and its last double quote, which may be a secret or a value.
func hidingQuotedText(in text: String) -> String {
    guard let first = text.firstIndex(of: "\""), let last = text.lastIndex(of: "\""), first < last else { return text }
    return text[...first] + "…" + text[last...]
}

/// The settings passed to libpq when it connects.
struct ConnectionSettings: Sendable {
    /// How long a server may leave sent data unacknowledged before its machine counts as gone, in milliseconds. The
    /// connection string can override it. Without this limit a cut cable is noticed only after a quarter of an hour.
    private static let silenceMilliseconds = "10000"

    let keywords: [(name: String, value: String)]
    /// The keywords without `options`, for a connection pooler that refuses them.
    let plainKeywords: [(name: String, value: String)]
    /// What gave the address, for messages.
    let addressSource: String
    /// The same settings for one transaction.
    let transaction: TransactionSettings

    /// - Throws: `.cannotConnect` when the connection string is not valid.
    init(_ configuration: DatabaseConfiguration, for purpose: DatabaseNote.Purpose) throws(DatabaseError) {
        let given = try ConnectionOptions(parsing: configuration.connectionString)
        addressSource = configuration.addressSource
        transaction = TransactionSettings(configuration, for: purpose)
        var options = [given.values["options"] ?? Self.optionsFromEnvironment()].compactMap(\.self)
        options += transaction.sessionOptions
        // With expand_dbname the connection string goes into dbname; later keywords override it.
        plainKeywords = [
            ("tcp_user_timeout", Self.silenceMilliseconds),
            ("fallback_application_name", "perennial"),
            ("dbname", configuration.connectionString),
            ("client_encoding", "UTF8"),
        ]
        keywords = plainKeywords + [("options", options.joined(separator: " "))]
    }

    /// Returns the value of `PGOPTIONS`, which our own options would otherwise replace.
    private static func optionsFromEnvironment() -> String? {
        guard let defaults = PQconndefaults() else { return nil }
        defer { PQconninfoFree(defaults) }
        return ConnectionOptions.values(of: defaults)["options"]
    }
}

/// The settings for every statement: sent once per session when it is our own, otherwise with every transaction.
struct TransactionSettings: Sendable {
    /// PostgreSQL's parameters for one transaction.
    private let values: [(name: String, value: String)]

    /// On a connection for reads the server refuses writes.
    init(_ configuration: DatabaseConfiguration, for purpose: DatabaseNote.Purpose) {
        let mode =
            switch purpose {
            case .reads: ("transaction_read_only", "on")
            case .transactions: ("transaction_isolation", "read committed")
            }
        values = [
            ("statement_timeout", "\(configuration.statementTimeoutMilliseconds)"),
            // Our statements are short: compiling one after a wrong estimate costs more than it saves.
            ("jit", "off"),
            // Our statements name their rows by key. PostgreSQL's default of 4 is for spinning disks: with it, a batch
            // of a hundred keys reads tables of some ten thousand rows as a whole.
            ("random_page_cost", "1.1"),
            mode,
        ]
    }

    /// The settings as options of a session, whose parameters for all its transactions begin with `default_`.
    var sessionOptions: [String] {
        values.map { name, value in
            let prefix = name.hasPrefix("transaction_") ? "default_" : ""
            return "-c \(prefix)\(name)=\(value.replacing(" ", with: "\\ "))"
        }
    }

    /// The settings as commands that follow BEGIN.
    var commands: String { values.map { "SET LOCAL \($0.name) = '\($0.value)'" }.joined(separator: "; ") }

    /// The settings as the first statement of a batch of reads, where SET LOCAL would print a warning: it has no BEGIN.
    var statement: Statement {
        let calls = values.map { "set_config('\($0.name)', '\($0.value)', true)" }
        return Statement(name: "transaction_settings", sql: "SELECT " + calls.joined(separator: ", "))
    }
}
