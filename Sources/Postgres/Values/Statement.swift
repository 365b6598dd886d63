/// One SQL statement, prepared once per connection under its name.
public struct Statement: Sendable, Hashable {
    /// The name it is prepared under and shown by in messages; two different statements need two names.
    public let name: String
    /// The SQL, with `$1`, `$2`, … for parameters.
    public let sql: String

    /// A statement by name and SQL.
    public init(name: String, sql: String) {
        self.name = name
        self.sql = sql
    }
}
