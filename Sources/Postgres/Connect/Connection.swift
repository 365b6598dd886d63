import CLibPQ

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// One `PGconn`. Only one thread at a time uses it: the thread that opens it passes it on and keeps no reference.
final class Connection: @unchecked Sendable {
    let pointer: OpaquePointer
    let settings: TransactionSettings
    /// `.borrowed` until it is known to be our own: code that is right for a borrowed session is right for any.
    var session = Session.borrowed
    var prepared = PreparedStatements()
    /// Whether the connection is unusable from now on.
    var isBroken = false

    /// Takes over an open connection.
    init(owning pointer: OpaquePointer, _ settings: TransactionSettings) {
        self.pointer = pointer
        self.settings = settings
        // A send must never block: the server may itself be waiting for us to read.
        PQsetnonblocking(pointer, 1)
    }

    deinit { PQfinish(pointer) }

    var socket: Int32 { PQsocket(pointer) }

    /// The account that logged in.
    var account: String { PQuser(pointer).map { String(cString: $0) } ?? "the account" }

    /// libpq's latest error message for this connection, on one line.
    var complaint: String {
        let text = oneLine(String(cString: PQerrorMessage(pointer)))
        return text.isEmpty ? "the server closed it" : text
    }

    /// Returns whether an idle connection still works, judged without a request to the server.
    func seemsAlive() -> Bool {
        guard !isBroken, PQstatus(pointer) == CONNECTION_OK else { return false }
        guard waitForSocket(POLLIN, until: ContinuousClock.now) else { return true }
        return PQconsumeInput(pointer) == 1 && PQstatus(pointer) == CONNECTION_OK
    }

    /// Waits until the socket is ready; returns false when `limit` passes first.
    func waitForSocket(_ events: Int32, until limit: Moment?) -> Bool {
        Self.waitForSocket(of: pointer, events, until: limit)
    }

    /// Polls the socket, also of a connection that is still being opened.
    private static func waitForSocket(of pointer: OpaquePointer, _ events: Int32, until limit: Moment?) -> Bool {
        var polled = pollfd(fd: PQsocket(pointer), events: Int16(events), revents: 0)
        while true {
            let milliseconds = limit.map { ($0 - ContinuousClock.now).pollMilliseconds } ?? -1
            let ready = poll(&polled, 1, milliseconds)
            if ready < 0, errno == EINTR { continue }
            if ready != 0 { return true }
            if let limit, limit > ContinuousClock.now { continue }
            return false
        }
    }

    /// Returns the data that `PQcancel` needs, for use on any thread.
    func cancellation() -> Cancellation? { PQgetCancel(pointer).map(Cancellation.init(owning:)) }
}

/// A request to the server, over a separate connection, to cancel the statement that another connection runs. It holds
/// only a copy of the address and the cancel key, which libpq lets any thread use.
final class Cancellation: @unchecked Sendable {
    private let pointer: OpaquePointer

    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { PQfreeCancel(pointer) }

    /// Blocks until the server accepts or refuses the request. Whether a statement was cancelled is unknown.
    func send() {
        var reason: [CChar] = Array(repeating: 0, count: 256)
        _ = PQcancel(pointer, &reason, Int32(reason.count))
    }
}

extension Connection {
    /// Connects on the calling thread, within `limit`; for the resolution of names the system has a limit of its own.
    /// - Throws: `.cannotConnect` with libpq's reason.
    static func open(_ settings: ConnectionSettings, within limit: Duration) throws(DatabaseError) -> Connection {
        let end = ContinuousClock.now + limit
        let pointer: OpaquePointer
        do {
            pointer = try open(settings.keywords, until: end, limit, settings.addressSource)
        } catch {
            // PgBouncer refuses `options` unless it is configured to ignore them.
            guard error.message.contains("unsupported startup parameter") else { throw error }
            pointer = try open(settings.plainKeywords, until: end, limit, settings.addressSource)
        }
        let connection = Connection(owning: pointer, settings.transaction)
        do throws(DatabaseError) {
            try connection.learnSession(within: end - ContinuousClock.now)
        } catch {
            throw .cannotConnect(error.message, by: settings.addressSource)
        }
        return connection
    }

    /// Opens a connection by libpq's asynchronous start, with a limit for the whole.
    private static func open(
        _ keywords: [(name: String, value: String)], until end: Moment, _ limit: Duration, _ source: String
    ) throws(DatabaseError) -> OpaquePointer {
        guard let pointer = start(keywords) else { throw .cannotConnect("out of memory", by: source) }
        // By default libpq prints notices and warnings of the start-up to standard error.
        PQsetNoticeProcessor(pointer, { _, _ in }, nil)
        var awaited = POLLOUT
        while true {
            guard PQstatus(pointer) != CONNECTION_BAD else { throw failed(pointer, source) }
            guard ContinuousClock.now < end, waitForSocket(of: pointer, awaited, until: end) else {
                PQfinish(pointer)
                throw .cannotConnect("no answer within \(limit)", by: source)
            }
            switch PQconnectPoll(pointer) {
            case PGRES_POLLING_READING: awaited = POLLIN
            case PGRES_POLLING_WRITING: awaited = POLLOUT
            case PGRES_POLLING_OK: return pointer
            default: throw failed(pointer, source)
            }
        }
    }

    /// Frees a connection that could not be opened, and returns libpq's reason.
    private static func failed(_ pointer: OpaquePointer, _ source: String) -> DatabaseError {
        let reason = oneLine(String(cString: PQerrorMessage(pointer)))
        PQfinish(pointer)
        return .cannotConnect(reason, by: source)
    }

    /// Begins to open a connection; nil without memory for it.
    private static func start(_ keywords: [(name: String, value: String)]) -> OpaquePointer? {
        let names = keywords.map { strdup($0.name) } + [nil]
        let values = keywords.map { strdup($0.value) } + [nil]
        defer { for text in names + values { free(text) } }
        return PQconnectStartParams(names.map { UnsafePointer($0) }, values.map { UnsafePointer($0) }, 1)
    }
}

/// The kind of server session behind a connection.
enum Session: Sendable {
    /// Our own for the life of the connection: prepared statements and settings persist.
    case own
    /// A pooler's, maybe another one in each transaction, which carries its settings and whole, unnamed statements.
    case borrowed
}

extension Connection {
    private static let askWhoAnswers = Statement(name: "who_answers", sql: "SELECT pg_backend_pid() AS pid")

    /// Detects the kind of session, so that no configuration is needed. A pooler answers the start-up itself and makes
    /// its own cancel key, whose process id differs from that of the process that answers statements.
    /// - Throws: the reason why the server did not say it within the limit.
    func learnSession(within limit: Duration) throws(DatabaseError) {
        let expected = PQbackendPID(pointer)
        guard let row = try run(Self.askWhoAnswers, [], within: limit).rows.first else {
            throw DatabaseError(.cannotConnect, "it does not say which process answers")
        }
        session = try row.int4("pid") == expected ? .own : .borrowed
    }
}

/// The statements that one connection has prepared, for transactions and for pipelined reads alike. The name on the
/// server carries a number: a statement that is prepared again (its plan is stale, or its parameters have other types)
/// cannot reuse its name.
struct PreparedStatements {
    private struct Prepared {
        let sql: String
        let types: [UInt32]
        let serverName: String
    }

    private var byName: [String: Prepared] = [:]
    private var generation = 0

    /// Returns the name on the server; nil when the statement must be prepared first.
    func serverName(of statement: Statement, _ parameters: [Parameter]) -> String? {
        guard let prepared = byName[statement.name], prepared.sql == statement.sql,
            prepared.types.elementsEqual(parameters.lazy.map(\.type))
        else { return nil }
        return prepared.serverName
    }

    /// Records that the statement is being prepared and returns the name to use.
    mutating func begin(_ statement: Statement, _ parameters: [Parameter]) -> String {
        let serverName = generation == 0 ? statement.name : "\(statement.name)~\(generation)"
        generation += 1
        byName[statement.name] = Prepared(sql: statement.sql, types: parameters.map(\.type), serverName: serverName)
        return serverName
    }

    /// Records that the server does not have the statement, or no longer has it. A later preparation of it stays.
    mutating func forget(_ statement: Statement, serverName: String) {
        if byName[statement.name]?.serverName == serverName { byName[statement.name] = nil }
    }

    /// Records that nothing prepared so far can be relied on.
    mutating func forgetAll() { byName = [:] }
}

/// How a connection sends preparations, prepared statements and whole ones, for transactions and for pipelined reads
/// alike. Nothing waits here: the results are read later. False when libpq refuses, for the reason in `complaint`.
extension Connection {
    /// The protocol counts parameters in 16 bits.
    static let parametersMax = 65_535

    /// Sends the text of a statement, which the server prepares under a name for as long as the session lasts.
    func sendPreparation(_ serverName: String, _ statement: Statement, _ parameters: [Parameter]) -> Bool {
        let types = parameters.map(\.type)
        return PQsendPrepare(pointer, serverName, statement.sql, Int32(types.count), types) == 1
    }

    /// Sends the name of a prepared statement with the parameters of one run.
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

    /// Lends the parameters to a send in the form that libpq wants: pointers, lengths, and binary as the format of
    /// each.
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
