import CLibPQ

/// What libpq is told when it connects.
struct ConnectionSettings: Sendable {
    /// What a connection is for; the server is told, and refuses writes on a connection for reads.
    enum Role: Sendable {
        case reads
        case transactions
    }

    let keywords: [(name: String, value: String)]
    /// Without `options`, for a connection pooler that refuses them; then only we enforce the limits.
    let plainKeywords: [(name: String, value: String)]

    /// - Throws: `.cannotConnect` when the connection string is not valid.
    init(_ configuration: DatabaseConfiguration, for role: Role) throws(DatabaseError) {
        let given = try ConnectionOptions(parsing: configuration.connectionString)
        var options = given["options"].map { [$0] } ?? Self.optionsFromEnvironment()
        options.append("-c statement_timeout=\(configuration.statementTimeoutMilliseconds)")
        // Our statements are short; compiling one costs more than it can save, and a wrong estimate is enough to begin.
        options.append("-c jit=off")
        switch role {
        case .reads: options.append("-c default_transaction_read_only=on")
        case .transactions: break
        }
        // With expand_dbname the connection string goes into dbname; what follows it wins.
        plainKeywords = [
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
