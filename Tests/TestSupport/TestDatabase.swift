import Foundation
package import Postgres

/// The PostgreSQL server that tests use.
package enum TestServer {
    /// From `PERENNIAL_TEST_DATABASE_URL`, which `scripts/test` sets; nil when it is missing.
    package static let connectionString: String? = ProcessInfo.processInfo.environment["PERENNIAL_TEST_DATABASE_URL"]

    /// The same, or one sentence that says what to do.
    package static func required() throws -> String {
        guard let connectionString else {
            throw TestSupportError(
                "PERENNIAL_TEST_DATABASE_URL is not set: run the tests by scripts/test, or set it to a PostgreSQL "
                    + "server where databases may be created.")
        }
        return connectionString
    }
}

/// Why a test could not be set up.
package struct TestSupportError: Error, CustomStringConvertible {
    /// One sentence that says what to do.
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// Creates an empty database of a random name, runs `body` with it and its connection string, and drops it.
package func withTestDatabase<R>(
    encoding: String = "UTF8", _ body: (Database, String) async throws -> R
) async throws -> R {
    // template0 has no sessions of its own, so that many tests may copy it at once.
    try await withTestDatabase(copying: "template0 ENCODING '\(encoding)'", body)
}

/// The same with a copy of another database, which must have no sessions.
func withTestDatabase<R>(
    copying template: String, connections: Int = 4, _ body: (Database, String) async throws -> R
) async throws -> R {
    let strategy = try await copyStrategy.value
    let name = "perennial_test_\(UInt64.random(in: 0 ... .max))"
    return try await withMaintenance { maintenance, server in
        try await maintenance.runOutsideTransaction("CREATE DATABASE \(name) TEMPLATE \(template)\(strategy)")
        let connectionString = try server.connectionString(forDatabase: name)
        let database = Database(
            DatabaseConfiguration(connectionString: connectionString, writeConnections: connections)
        ) { print("test database: \($0)") }
        do {
            let result = try await body(database, connectionString)
            await database.close()
            try await maintenance.runOutsideTransaction("DROP DATABASE \(name) WITH (FORCE)")
            return result
        } catch {
            await database.close()
            try await maintenance.runOutsideTransaction("DROP DATABASE \(name) WITH (FORCE)")
            throw error
        }
    }
}

/// Runs `body` with the database from which others are made and dropped, and with its configuration.
func withMaintenance<R>(_ body: (Database, DatabaseConfiguration) async throws -> R) async throws -> R {
    let server = try DatabaseConfiguration(connectionString: TestServer.required(), writeConnections: 1)
    let maintenance = Database(server) { print("test server: \($0)") }
    do {
        let result = try await body(maintenance, server)
        await maintenance.close()
        return result
    } catch {
        await maintenance.close()
        throw error
    }
}

/// The way of copying that takes half the processor time of the usual one; its two checkpoints cost little without
/// `fsync`. PostgreSQL 14 knows no other way and no word for it. A process asks the server once.
private let copyStrategy: Task<String, any Error> = Task {
    try await withMaintenance { server, _ in
        let version = Statement(name: "version", sql: "SELECT current_setting('server_version_num')::int8 AS number")
        let number = try await server.query(version).first?.int8("number") ?? 0
        return number >= 150_000 ? " STRATEGY file_copy" : ""
    }
}
