import Postgres

@testable import Ledger

/// A ledger on connections that act as a role.
func acting<R>(
    as role: String, on test: TestLedger, _ body: (SubscriptionLedger, Database) async throws -> R
) async throws -> R {
    let database = Database(
        DatabaseConfiguration(connectionString: test.connectionString + " options='-c role=\(role)'")
    ) { print("as \(role): \($0)") }
    let seal = try SecretSeal(masterKey: TestLedger.seal)
    do {
        let result = try await body(SubscriptionLedger(database: database, seal: seal), database)
        await database.close()
        return result
    } catch {
        await database.close()
        throw error
    }
}
