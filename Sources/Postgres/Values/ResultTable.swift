import CLibPQ

/// A result of libpq. It never changes once libpq has returned it, so any thread may read it.
final class ResultTable: @unchecked Sendable {
    private let pointer: OpaquePointer
    let statementName: String

    /// Takes ownership of the result: it is cleared with this object.
    init(owning pointer: OpaquePointer, of statementName: String) {
        self.pointer = pointer
        self.statementName = statementName
    }

    deinit { PQclear(pointer) }

    var rows: [Row] {
        let count = PQntuples(pointer)
        return count == 0 ? [] : (0..<count).map { Row(table: self, index: $0) }
    }

    var columns: [String] {
        (0..<PQnfields(pointer)).map { column in PQfname(pointer, column).map { String(cString: $0) } ?? "" }
    }

    /// The number of rows the command changed; 0 for commands that change none.
    var affectedRows: Int { PQcmdTuples(pointer).flatMap { Int(String(cString: $0)) } ?? 0 }

    /// The first word of the command tag: `COMMIT` may come back as `ROLLBACK`.
    var commandTag: String { PQcmdStatus(pointer).map { String(cString: $0) } ?? "" }

    /// Returns the position of a column by its exact name. Rows have few columns, so comparing is faster than hashing.
    func position(of column: String) -> Int32? {
        column.withCString { wanted in
            (0..<PQnfields(pointer)).first { PQfname(pointer, $0).map { compare($0, wanted) } ?? false }
        }
    }

    func type(of column: Int32) -> UInt32 { PQftype(pointer, column) }

    func isNull(_ row: Int32, _ column: Int32) -> Bool { PQgetisnull(pointer, row, column) == 1 }

    /// Runs `body` over the bytes of a value, which live as long as the table.
    func withBytes<Value>(_ row: Int32, _ column: Int32, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        let count = Int(PQgetlength(pointer, row, column))
        return body(UnsafeRawBufferPointer(start: PQgetvalue(pointer, row, column), count: count))
    }

    private func compare(_ left: UnsafePointer<CChar>, _ right: UnsafePointer<CChar>) -> Bool {
        var position = 0
        while left[position] == right[position] {
            if left[position] == 0 { return true }
            position += 1
        }
        return false
    }
}
