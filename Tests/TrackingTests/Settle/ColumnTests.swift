import SQL
import Testing

@testable import Tracking

@Suite("Written rows have the columns of their statement")
struct ColumnTests {
    /// Each statement that takes rows, the number of its parameters before them, and the columns that Swift sends.
    private static let statements: [(file: SQLFile, first: Int, columns: [String])] = [
        (Queries.insertEvents, 0, EventRow.columns.map(\.name)),
        (Queries.insertObservations, 0, ObservationRow.columns.map(\.name)),
        (Queries.insertSpans, 0, SpanRow.columns.map(\.name)),
        (Queries.reschedule, 1, ScheduleWrite.columns.map(\.name)),
        (Queries.writePeriods, 0, PeriodWrite.columns.map(\.name)),
        (Queries.writePurchases, 0, PurchaseWrite.columns.map(\.name)),
        (Queries.writeReceipts, 2, ReceiptWrite.columns.map(\.name)),
        (Queries.writeSubscriptions, 0, SubscriptionWrite.columns.map(\.name)),
    ]

    @Test("Swift sends the columns that the statement names, in the same order", arguments: statements)
    func names(file: SQLFile, first: Int, columns: [String]) throws {
        let lists = file.text.matches(of: /unnest\(\s*([^()]+)\)\s*AS n\(([^()]+)\)/).map { list in
            (
                numbers: list.1.matches(of: /\$(\d+)::/).compactMap { Int($0.1) },
                names: list.2.matches(of: /\w+/).map { String($0.0) }
            )
        }
        let rows = try #require(lists.last, "\(file.name) takes no rows")
        #expect(rows.names == columns)
        #expect(rows.numbers == columns.indices.map { first + 1 + $0 })
    }
}
