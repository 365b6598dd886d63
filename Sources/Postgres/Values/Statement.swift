/// One SQL statement, prepared once per connection under its name.
package struct Statement: Sendable, Hashable {
    /// The name under which it is prepared and shown in messages; two different statements need two names.
    package let name: String
    /// The SQL, with `$1`, `$2`, … for parameters.
    package let sql: String

    /// Creates a statement.
    package init(name: String, sql: String) {
        self.name = name
        self.sql = sql
    }
}
