import Postgres
import Testing

/// Runs SQL text as a statement named like the SQL itself, so that no two statements share a name.
extension Database {
    func ask(_ sql: String, _ parameters: [Parameter] = []) async throws(DatabaseError) -> [Row] {
        try await query(Statement(name: sql, sql: sql), parameters)
    }

    func script(_ sql: String) async throws {
        try await transaction { try $0.script(sql) }
    }

    func change(_ sql: String, _ parameters: [Parameter] = []) async throws -> Int {
        try await transaction { try $0.execute(Statement(name: sql, sql: sql), parameters) }
    }
}

/// The error that `body` throws; records an issue when it throws none or another type.
func databaseError(
    at location: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async -> DatabaseError? {
    do {
        try await body()
        Issue.record("no error was thrown", sourceLocation: location)
    } catch let error as DatabaseError {
        return error
    } catch {
        Issue.record("another error was thrown: \(error)", sourceLocation: location)
    }
    return nil
}
