import CLibPQ

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
