import Postgres
import SQL
import Subscriptions

/// A value that a statement takes as one row of its array parameters.
protocol ColumnarRow {
    /// The columns that the statement names behind `unnest`, in the order of its parameters.
    static var columns: [Column<Self>] { get }
}

/// One array parameter of a statement: its name there, and its value in each row.
///
/// A value stands beside the name that the statement gives it, so two columns of one type cannot change places unseen.
/// A test compares the names with the statements.
struct Column<Item>: Sendable {
    let name: String
    let parameter: @Sendable ([Item]) -> Parameter

    static func bool(_ name: String, _ value: @escaping @Sendable (Item) -> Bool?) -> Column {
        Column(name: name) { .bools($0.map(value)) }
    }

    static func int2(_ name: String, _ value: @escaping @Sendable (Item) -> Int16?) -> Column {
        Column(name: name) { .int2s($0.map(value)) }
    }

    static func int4(_ name: String, _ value: @escaping @Sendable (Item) -> Int32?) -> Column {
        Column(name: name) { .int4s($0.map(value)) }
    }

    static func int8(_ name: String, _ value: @escaping @Sendable (Item) -> Int64?) -> Column {
        Column(name: name) { .int8s($0.map(value)) }
    }

    static func text(_ name: String, _ value: @escaping @Sendable (Item) -> String?) -> Column {
        Column(name: name) { .texts($0.map(value)) }
    }

    static func bytea(_ name: String, _ value: @escaping @Sendable (Item) -> [UInt8]?) -> Column {
        Column(name: name) { .byteas($0.map(value)) }
    }

    static func uuid(_ name: String, _ value: @escaping @Sendable (Item) -> [UInt8]?) -> Column {
        Column(name: name) { .uuids($0.map(value)) }
    }

    /// A `jsonb[]` from JSON texts.
    static func jsonb(_ name: String, _ value: @escaping @Sendable (Item) -> String?) -> Column {
        Column(name: name) { .jsonbs($0.map(value)) }
    }

    static func instant(_ name: String, _ value: @escaping @Sendable (Item) -> Instant?) -> Column {
        Column(name: name) { .instants($0.map(value)) }
    }

    /// A `timestamptz[]` from microseconds, the database's own precision.
    static func microseconds(_ name: String, _ value: @escaping @Sendable (Item) -> Int64?) -> Column {
        Column(name: name) { .timestamptzs($0.map(value)) }
    }
}

extension Transaction {
    /// Sends `rows` column by column, after the parameters in `first`.
    @discardableResult
    func query<Item: ColumnarRow>(
        _ file: SQLFile, _ first: [Parameter] = [], rows: [Item]
    ) throws -> [Row] {
        try query(file, first + Item.columns.map { $0.parameter(rows) })
    }
}
