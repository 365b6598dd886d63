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
