import Postgres
import SQL

extension SubscriptionLedger {
    /// The SQL that gives the roles owner, worker, api and report their rights, for managed databases.
    package static var roleScript: String {
        Queries.createRoles.text + "\n" + Queries.grantRoles.text
    }

    /// Makes the roles and grants them what each needs, never more.
    package func grantRoles() async throws {
        try await database.transaction { transaction in
            try transaction.script(Queries.lockMigrations.text)
            try transaction.script(Self.roleScript)
        }
    }
}
