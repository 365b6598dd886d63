import Foundation
import Postgres
import Testing

/// A column's value. Tests write it as a literal: `1`, `true`, `"text"`, or `nil` for NULL.
enum Cell: Equatable {
    case null
    case bool(Bool)
    case number(Double)
    case text(String)
}

extension TestLedger {
    /// Expects the rows of a query, each with its columns in order.
    func expectRows(
        _ sql: String, _ expected: [[Cell]], at location: SourceLocation = #_sourceLocation
    ) async throws {
        let statement = Statement.test(
            "SELECT (SELECT json_agg(value)::text FROM json_each(row_to_json(q))) AS line FROM (\(sql)) q")
        let rows = try await database.query(statement).map { row in
            try JSONDecoder().decode([Cell].self, from: Data(row.text("line").utf8))
        }
        #expect(rows == expected, sourceLocation: location)
    }
}

extension Cell: Decodable {
    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let bool = try? value.decode(Bool.self) {
            self = .bool(bool)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else {
            self = .text(try value.decode(String.self))
        }
    }
}

extension Cell: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByStringLiteral
{
    init(nilLiteral: ()) { self = .null }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(integerLiteral value: Int) { self = .number(Double(value)) }
    init(stringLiteral value: String) { self = .text(value) }
}
