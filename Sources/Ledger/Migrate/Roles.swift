import Postgres
import SQL

extension SubscriptionLedger {
    /// The SQL that grants the roles owner, worker, api and report their privileges, for managed databases.
    package static var roleScript: String {
        Queries.createRoles.text + "\n" + Queries.grantRoles.text
    }

    /// Creates the roles and grants each one only the privileges that it needs.
    package func grantRoles() async throws {
        try await database.transaction { transaction in
            try transaction.script(Queries.lockMigrations.text)
            try transaction.script(Self.roleScript)
        }
    }
}
