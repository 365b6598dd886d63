import CLibPQ

/// What we send: a preparation and runs of what was prepared, or statements whole. False when libpq refused; `complaint`
/// says why.
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

    /// Sends text and parameters together: the server prepares it without a name and forgets it.
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
        // One buffer for all values: libpq wants pointers, and a Swift array lends only one at a time. The spare byte
        // gives an empty value an address, without which libpq would send NULL.
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
    /// What the server would say to too many parameters, had libpq a way to send them; nil when there are few enough.
    static func tooManyParameters(_ statement: Statement, _ parameters: [Parameter]) -> DatabaseError? {
        guard parameters.count > Connection.parametersMax else { return nil }
        return DatabaseError(
            .server(sqlState: "54023", constraint: nil, table: nil),
            "Statement '\(statement.name)' has \(parameters.count) parameters, the protocol allows "
                + "\(Connection.parametersMax); pass arrays.")
    }
}
