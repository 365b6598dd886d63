/// One SQL statement, prepared once per connection under its name.
package struct Statement: Sendable, Hashable {
    /// The name it is prepared under and shown by in messages; two different statements need two names.
    package let name: String
    /// The SQL, with `$1`, `$2`, … for parameters.
    package let sql: String

    /// A statement by name and SQL.
    package init(name: String, sql: String) {
        self.name = name
        self.sql = sql
    }
}
