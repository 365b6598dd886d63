/// One row of a result, read by column name. Every reading function throws `.decoding`, with column and type, when the
/// column does not exist or has another type. For NULL the plain functions throw too; the `…IfPresent` ones return nil.
package struct Row: Sendable {
    let table: ResultTable
    let index: Int32

    /// The names of the columns, in order.
    package var columns: [String] { table.columns }

    /// Returns whether the column is NULL.
    package func isNull(_ column: String) throws(DatabaseError) -> Bool {
        table.isNull(index, try position(of: column))
    }

    func present<Value>(_ column: String, _ type: ColumnType<Value>) throws(DatabaseError) -> Value {
        guard let value = try optional(column, type) else {
            throw failure("Column '\(column)' is NULL where \(type.name) was asked for")
        }
        return value
    }

    func optional<Value>(_ column: String, _ type: ColumnType<Value>) throws(DatabaseError) -> Value? {
        let position = try position(of: column)
        guard !table.isNull(index, position) else { return nil }
        let stored = table.type(of: position)
        guard let value = table.withBytes(index, position, { type.decode(stored, $0) }) else {
            throw failure("Column '\(column)' cannot be read as \(type.name), its type has OID \(stored)")
        }
        return value
    }

    func filled<Value>(_ column: String, _ type: ColumnType<Value>) throws(DatabaseError) -> [Value] {
        let elements = try present(column, type.elements)
        let values = elements.compactMap { $0 }
        guard values.count == elements.count else {
            throw failure("Column '\(column)' has a NULL element where none was expected")
        }
        return values
    }

    private func position(of column: String) throws(DatabaseError) -> Int32 {
        guard let position = table.position(of: column) else {
            throw failure("There is no column '\(column)'")
        }
        return position
    }

    private func failure(_ what: String) -> DatabaseError {
        DatabaseError(.decoding, "\(what) (statement '\(table.statementName)'); correct the statement or the reader.")
    }
}
