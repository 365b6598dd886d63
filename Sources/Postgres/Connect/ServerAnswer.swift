import CLibPQ

/// One result, classified by its meaning.
enum ServerAnswer {
    case rows(ResultTable)
    /// The server refused the statement.
    case failure(DatabaseError)
    /// The server ends the connection, or the connection has ended.
    case lost(reason: String)
    /// An earlier statement of the same batch failed, so the server skipped this one.
    case aborted
    /// The end of a batch.
    case sync
    /// A result that no statement requested, such as the start of a COPY; the connection is unusable from then on.
    case unexpected(String)

    /// Takes ownership of the result.
    init(_ result: OpaquePointer, of statementName: String) {
        switch PQresultStatus(result) {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
            self = .rows(ResultTable(owning: result, of: statementName))
            return
        case PGRES_PIPELINE_SYNC: self = .sync
        case PGRES_PIPELINE_ABORTED: self = .aborted
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE: self = Self.failure(result, statementName)
        default: self = .unexpected("'\(statementName)' began a transfer that is not supported (COPY)")
        }
        PQclear(result)
    }

    /// The fields of an error, by the letters of `postgres_ext.h` (`PG_DIAG_…`), which Swift cannot import.
    private enum Field: Character {
        case message = "M"
        case sqlState = "C"
        case constraint = "n"
        case table = "t"
        case sourceFunction = "R"

        var code: Int32 { rawValue.asciiValue.map(Int32.init) ?? 0 }
    }

    private static func failure(_ result: OpaquePointer, _ statementName: String) -> ServerAnswer {
        let text = field(result, .message) ?? oneLine(String(cString: PQresultErrorMessage(result)))
        // Without a SQLSTATE libpq wrote the message itself. Shutdown and crash (57P01 to 57P03) end the connection.
        guard let sqlState = field(result, .sqlState), !["57P01", "57P02", "57P03"].contains(sqlState) else {
            return .lost(reason: text)
        }
        if sqlState == "57014" { return .failure(.statementTimedOut(statementName)) }
        // The server quotes the offending value in data errors. The value is the customer's and must not reach a log.
        let sentence = sqlState.hasPrefix("22") ? hidingQuotedText(in: text) : text
        let constraint = field(result, .constraint)
        let table = field(result, .table)
        // "cached plan must not change result type" may be translated; the name of the function that raises it is not.
        let stale =
            sqlState == "26000"
            || (sqlState == "0A000" && field(result, .sourceFunction) == "RevalidateCachedQuery")
        let error = DatabaseError(
            .server(sqlState: sqlState, constraint: constraint, table: table),
            "PostgreSQL refused '\(statementName)': \(oneLine(sentence)) (SQLSTATE \(sqlState)).",
            isStalePreparation: stale)
        return .failure(error)
    }

    private static func field(_ result: OpaquePointer, _ field: Field) -> String? {
        PQresultErrorField(result, field.code).map { String(cString: $0) }
    }
}
