import CLibPQ

/// Sending: a preparation and executions of the prepared statement, or whole statements. Each function returns false
/// when libpq refuses; `complaint` then holds the reason.
extension Connection {
    /// The protocol counts parameters in 16 bits.
    static let parametersMax = 65_535

    func sendPreparation(_ serverName: String, _ statement: Statement, _ parameters: [Parameter]) -> Bool {
        let types = parameters.map(\.type)
        return PQsendPrepare(pointer, serverName, statement.sql, Int32(types.count), types) == 1
    }

    func sendRun(_ serverName: String, _ parameters: [Parameter]) -> Bool {
        withValues(of: parameters) { values, lengths, formats in
            PQsendQueryPrepared(pointer, serverName, Int32(parameters.count), values, lengths, formats, 1) == 1
        }
    }

    /// Sends text and parameters together: the server prepares the statement without a name and discards it.
    func sendWhole(_ statement: Statement, _ parameters: [Parameter]) -> Bool {
        let types = parameters.map(\.type)
        return withValues(of: parameters) { values, lengths, formats in
            PQsendQueryParams(
                pointer, statement.sql, Int32(parameters.count), types, values, lengths, formats, 1) == 1
        }
    }

    private func withValues(
        of parameters: [Parameter], _ send: ([UnsafePointer<CChar>?], [Int32], [Int32]) -> Bool
    ) -> Bool {
        let lengths = parameters.map { Int32(truncatingIfNeeded: $0.bytes?.count ?? 0) }
        let formats = Array(repeating: Int32(1), count: parameters.count)
        // One buffer holds all values: libpq wants pointers, and Swift lends the pointer of only one array at a time.
        // The spare byte gives an empty value an address, without which libpq would send NULL.
        var buffer: [UInt8] = []
        buffer.reserveCapacity(lengths.reduce(1) { $0 + Int($1) })
        for parameter in parameters { if let bytes = parameter.bytes { buffer.append(contentsOf: bytes) } }
        buffer.append(0)
        return buffer.withUnsafeBytes { raw in
            var offset = 0
            let values = parameters.map { parameter -> UnsafePointer<CChar>? in
                guard let bytes = parameter.bytes else { return nil }
                defer { offset += bytes.count }
                return raw.baseAddress?.advanced(by: offset).assumingMemoryBound(to: CChar.self)
            }
            return send(values, lengths, formats)
        }
    }
}

extension DatabaseError {
    /// Returns the error for too many parameters, which libpq cannot send; nil when their number is within the limit.
    static func tooManyParameters(_ statement: Statement, _ parameters: [Parameter]) -> DatabaseError? {
        guard parameters.count > Connection.parametersMax else { return nil }
        return DatabaseError(
            .server(sqlState: "54023", constraint: nil, table: nil),
            "Statement '\(statement.name)' has \(parameters.count) parameters, the protocol allows "
                + "\(Connection.parametersMax); pass arrays.")
    }
}
