import Foundation
package import Postgres
import Synchronization

/// Lends a migrated database without an app, as `withMigratedDatabase` does, that tests use one after the other: its
/// sessions have planned most statements, and planning a statement takes longer than running it on the few rows of a test.
///
/// A test that changes the structure, fills tables or fails takes the database with it. A test that looks at plans, statistics or the
/// whole of the catalog makes one of its own instead. More than two `connections` are new ones, which end with the test.
package func withReusedDatabase<R>(
    connections: Int = 2, _ body: (Database, String) async throws -> R
) async throws -> R {
    let lent = free.withLock { $0.popLast() } ?? Lent(ReusedDatabase.make)
    do {
        let reused = try await lent.world()
        let database = connections == 2 ? reused.database : reused.connected(by: connections)
        let result = try await body(database, reused.connectionString)
        if connections != 2 { await database.close() }
        if try await reused.rows.putBack() {
            free.withLock { $0.append(lent) }
        } else {
            try await lent.end()
        }
        return result
    } catch {
        try await lent.end()
        throw error
    }
}

/// Those that no test uses now. They are dropped as the process ends; with a single thread that would wait for itself,
/// so the wait has an end.
private let free: Mutex<[Lent<ReusedDatabase>]> = {
    atexit {
        let dropped = DispatchSemaphore(value: 0)
        Task.detached {
            for lent in free.withLock({ $0 }) { try? await lent.end() }
            dropped.signal()
        }
        _ = dropped.wait(timeout: .now() + 10)
    }
    return Mutex([])
}()

private struct ReusedDatabase: Sendable {
    let database: Database
    let connectionString: String
    let rows: KeptRows

    static let make: OncePerSuite<ReusedDatabase>.Making = { lend in
        try await withMigratedDatabase(connections: 2) { database, connectionString in
            let rows = try await KeptRows(in: connectionString)
            try await lend(ReusedDatabase(database: database, connectionString: connectionString, rows: rows))
        }
    }

    func connected(by connections: Int) -> Database {
        Database(DatabaseConfiguration(connectionString: connectionString, writeConnections: connections)) {
            print("test database: \($0)")
        }
    }
}
