import Foundation
import Postgres
import Testing
import Tracking

/// A column's value. Tests write it as a literal: `1`, `-0.5`, `true`, `"text"`, or `nil` for NULL.
enum Cell: Equatable {
    case null
    case bool(Bool)
    case number(Double)
    case text(String)
}

extension Cell {
    static func receipt(_ id: ReceiptID) -> Cell { .number(Double(id.number)) }

    static func count(_ count: Int) -> Cell { .number(Double(count)) }
}

extension Database {
    /// The rows of a query, each with its columns in order.
    func cells(_ sql: String, _ parameters: [Parameter] = []) async throws -> [[Cell]] {
        let statement = Statement.test(
            "SELECT (SELECT json_agg(value)::text FROM json_each(row_to_json(q))) AS line FROM (\(sql)) q")
        return try await query(statement, parameters).map { row in
            try JSONDecoder().decode([Cell].self, from: Data(row.text("line").utf8))
        }
    }
}

extension TestLedger {
    /// Expects the rows of a query, each with its columns in order.
    func expectRows(
        _ sql: String, with parameters: [Parameter] = [], _ expected: [[Cell]], _ comment: Comment? = nil,
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        let rows = try await database.cells(sql, parameters)
        #expect(rows == expected, comment, sourceLocation: location)
    }

    /// The columns of the single row a query answers.
    func row(_ sql: String, _ parameters: [Parameter] = []) async throws -> [Cell] {
        let rows = try await database.cells(sql, parameters)
        try #require(rows.count == 1, "\(sql) answered \(rows.count) rows")
        return rows[0]
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
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral
{
    init(nilLiteral: ()) { self = .null }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(integerLiteral value: Int) { self = .number(Double(value)) }
    init(floatLiteral value: Double) { self = .number(value) }
    init(stringLiteral value: String) { self = .text(value) }
}
