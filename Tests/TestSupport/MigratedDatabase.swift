import Crypto
import Foundation
package import Postgres
import SQL
import Tracking

/// Creates a database of a random name with the schema in it, runs `body` with it and its connection string, and drops it.
///
/// The schema is made once for each state of the migrations and copied: that takes a tenth of the time.
package func withMigratedDatabase<R>(
    connections: Int = 4, _ body: (Database, String) async throws -> R
) async throws -> R {
    let template = try await migratedTemplate.value
    return try await withTestDatabase(copying: template, connections: connections) { database, connectionString in
        // A copy is another place, as after a restore; its feed is its own from the beginning.
        try await database.transaction { try $0.script("UPDATE ledger.feed SET place = ledger.feed_place()") }
        return try await body(database, connectionString)
    }
}

/// The name of a database that is as `perennial migrate` leaves it; it stays on the server for later runs.
/// A process looks for it once.
private let migratedTemplate: Task<String, any Error> = Task {
    let digest = SHA256.hash(data: Data(Migrations.all.map(\.text).joined(separator: "\n").utf8))
    let name = "perennial_template_" + digest.prefix(8).map { String(format: "%02x", $0) }.joined()
    return try await withMaintenance { maintenance, server in
        if try await !exists(name, on: maintenance) { try await make(name, on: server, by: maintenance) }
        return name
    }
}

private func exists(_ name: String, on server: Database) async throws -> Bool {
    try await server.query(
        Statement(name: "template", sql: "SELECT FROM pg_database WHERE datname = $1::text"), [.text(name)]
    ).isEmpty == false
}

/// Makes a draft and renames it. The first process to rename wins; the others drop their drafts.
private func make(_ name: String, on server: DatabaseConfiguration, by maintenance: Database) async throws {
    let draft = "\(name)_\(UInt32.random(in: 0 ... .max))"
    try await maintenance.runOutsideTransaction("CREATE DATABASE \(draft) TEMPLATE template0")
    let connectionString = try server.connectionString(forDatabase: draft)
    let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print("template: \($0)") }
    do {
        let seal = try SecretSeal(masterKey: Array(0..<32))
        _ = try await SubscriptionLedger(database: database, seal: seal).operations.migrate()
        await database.close()
        try await rename(draft, to: name, by: maintenance)
    } catch {
        await database.close()
        try await maintenance.runOutsideTransaction("DROP DATABASE \(draft) WITH (FORCE)")
        guard try await exists(name, on: maintenance) else { throw error }
    }
}

/// The server may take a moment to see that the last session has gone.
private func rename(_ draft: String, to name: String, by maintenance: Database) async throws {
    let statement = "ALTER DATABASE \(draft) RENAME TO \(name)"
    for _ in 1..<50 {
        do {
            return try await maintenance.runOutsideTransaction(statement)
        } catch {
            try await Task.sleep(for: .milliseconds(100))
        }
    }
    try await maintenance.runOutsideTransaction(statement)
}
