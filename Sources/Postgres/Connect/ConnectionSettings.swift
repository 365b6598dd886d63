import CLibPQ

/// What libpq is told when it connects.
struct ConnectionSettings: Sendable {
    /// What a connection is for; the server is told, and refuses writes on a connection for reads.
    enum Role: Sendable {
        case reads
        case transactions
    }

    /// How long a server may leave what we sent unacknowledged before its machine counts as gone, in milliseconds; the
    /// connection string may say otherwise. Without it a cut cable shows after a quarter of an hour.
    private static let silenceMilliseconds = "10000"

    let keywords: [(name: String, value: String)]
    /// Without `options`, for a connection pooler that refuses them; then every transaction brings its settings.
    let plainKeywords: [(name: String, value: String)]
    /// The same settings for one transaction.
    let transaction: TransactionSettings

    /// - Throws: `.cannotConnect` when the connection string is not valid.
    init(_ configuration: DatabaseConfiguration, for role: Role) throws(DatabaseError) {
        let given = try ConnectionOptions(parsing: configuration.connectionString)
        transaction = TransactionSettings(configuration, for: role)
        var options = given["options"].map { [$0] } ?? Self.optionsFromEnvironment()
        options += transaction.values.map { "-c \($0.sessionName)=\($0.value)" }
        // With expand_dbname the connection string goes into dbname; what follows it wins.
        plainKeywords = [
            ("tcp_user_timeout", Self.silenceMilliseconds),
            ("fallback_application_name", configuration.applicationName),
            ("dbname", configuration.connectionString),
            ("client_encoding", "UTF8"),
        ]
        keywords = plainKeywords + [("options", options.joined(separator: " "))]
    }

    /// `PGOPTIONS`, which our own options would otherwise replace.
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
