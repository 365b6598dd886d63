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
        // libpq ends a password at its first @ or / and would print the rest as the name of a host or a database.
        guard values["host"]?.contains("@") != true, !Self.pathHoldsAt(text) else {
            throw .invalidConnectionString("an @ stands in the host or behind it")
        }
        let ports = values["port"]?.split(separator: ",") ?? []
        guard ports.allSatisfy({ UInt16($0) != nil }) else {
            throw .invalidConnectionString("the port is not a number from 1 to 65535")
        }
    }

    /// Whether a URI has an unencoded @ between the slash behind its host and its parameters.
    private static func pathHoldsAt(_ text: String) -> Bool {
        guard let scheme = text.firstRange(of: "://") else { return false }
        let rest = text[scheme.upperBound...].drop { $0 != "@" && $0 != "/" }
        return rest.dropFirst(rest.first == "@" ? 1 : 0).prefix { $0 != "?" }.drop { $0 != "/" }.contains("@")
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

/// Returns the text without what is between its first and its last double quote, for messages that may quote a secret or
/// a value, which may hold a quote too.
func hidingQuotedText(in text: String) -> String {
    guard let first = text.firstIndex(of: "\""), let last = text.lastIndex(of: "\""), first < last else { return text }
    return text[...first] + "…" + text[last...]
}

/// The settings passed to libpq when it connects.
struct ConnectionSettings: Sendable {
    /// The purpose of a connection. The server learns it, and refuses writes on a connection for reads.
    enum Role: Sendable {
        case reads
        case transactions
    }

    /// How long a server may leave sent data unacknowledged before its machine counts as gone, in milliseconds. The
    /// connection string can override it. Without this limit a cut cable is noticed only after a quarter of an hour.
    private static let silenceMilliseconds = "10000"

    let keywords: [(name: String, value: String)]
    /// The keywords without `options`, for a connection pooler that refuses them; every transaction then carries its
    /// settings.
    let plainKeywords: [(name: String, value: String)]
    /// What gave the address, for messages.
    let addressSource: String
    /// The same settings for one transaction.
    let transaction: TransactionSettings

    /// - Throws: `.cannotConnect` when the connection string is not valid.
    init(_ configuration: DatabaseConfiguration, for role: Role) throws(DatabaseError) {
        let given = try ConnectionOptions(parsing: configuration.connectionString)
        addressSource = configuration.addressSource
        transaction = TransactionSettings(configuration, for: role)
        var options = given["options"].map { [$0] } ?? Self.optionsFromEnvironment()
        options += transaction.values.map { "-c \($0.sessionName)=\($0.value.replacing(" ", with: "\\ "))" }
        // With expand_dbname the connection string goes into dbname; later keywords override it.
        plainKeywords = [
            ("tcp_user_timeout", Self.silenceMilliseconds),
            ("fallback_application_name", configuration.applicationName),
            ("dbname", configuration.connectionString),
            ("client_encoding", "UTF8"),
        ]
        keywords = plainKeywords + [("options", options.joined(separator: " "))]
    }

    /// Returns the value of `PGOPTIONS`, which our own options would otherwise replace.
    private static func optionsFromEnvironment() -> [String] {
        guard let defaults = PQconndefaults() else { return [] }
        defer { PQconninfoFree(defaults) }
        var option = defaults
        while let keyword = option.pointee.keyword {
            if String(cString: keyword) == "options", let value = option.pointee.val { return [String(cString: value)] }
            option += 1
        }
        return []
    }
}

/// The settings for every statement: sent once per session when it is our own, otherwise with every transaction.
struct TransactionSettings: Sendable {
    struct Value: Sendable {
        /// The parameter for a whole session.
        let sessionName: String
        /// The parameter for one transaction.
        let name: String
        let value: String
    }

    let values: [Value]

    init(_ configuration: DatabaseConfiguration, for role: ConnectionSettings.Role) {
        let timeout = "\(configuration.statementTimeoutMilliseconds)"
        var values = [
            Value(sessionName: "statement_timeout", name: "statement_timeout", value: timeout),
            // Our statements are short: JIT compilation costs more than it saves, and one wrong estimate would start
            // it.
            Value(sessionName: "jit", name: "jit", value: "off"),
            // Our statements name their rows by key. PostgreSQL's default of 4 is for spinning disks: with it, a batch
            // of a hundred keys reads tables of some ten thousand rows as a whole.
            Value(sessionName: "random_page_cost", name: "random_page_cost", value: "1.1"),
        ]
        switch role {
        case .reads:
            values.append(
                Value(sessionName: "default_transaction_read_only", name: "transaction_read_only", value: "on"))
        case .transactions:
            values.append(
                Value(
                    sessionName: "default_transaction_isolation", name: "transaction_isolation", value: "read committed"
                ))
        }
        self.values = values
    }

    /// The settings as commands that follow BEGIN.
    var commands: String { values.map { "SET LOCAL \($0.name) = '\($0.value)'" }.joined(separator: "; ") }

    /// The settings as the first statement of a batch of reads. Such a batch is one transaction without a BEGIN, and
    /// SET LOCAL would print a warning there each time.
    var statement: Statement {
        let calls = values.map { "set_config('\($0.name)', '\($0.value)', true)" }
        return Statement(name: "transaction_settings", sql: "SELECT " + calls.joined(separator: ", "))
    }
}
