import CLibPQ

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

extension Connection {
    /// Connects on the calling thread, within `limit`. Name resolution is outside it: the system has its own limit for
    /// that.
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

    private static func open(
        _ keywords: [(name: String, value: String)], until end: Moment, _ limit: Duration, _ source: String
    ) throws(DatabaseError) -> OpaquePointer {
        guard let pointer = start(keywords) else { throw .cannotConnect("out of memory", by: source) }
        // By default libpq prints notices and warnings of the start-up to standard error.
        PQsetNoticeProcessor(pointer, { _, _ in }, nil)
        var awaited = POLLOUT
        while true {
            guard PQstatus(pointer) != CONNECTION_BAD else { throw failed(pointer, source) }
            guard awaitSocket(of: pointer, awaited, until: end) else {
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

    private static func failed(_ pointer: OpaquePointer, _ source: String) -> DatabaseError {
        let reason = oneLine(String(cString: PQerrorMessage(pointer)))
        PQfinish(pointer)
        return .cannotConnect(reason, by: source)
    }

    private static func awaitSocket(of pointer: OpaquePointer, _ events: Int32, until end: Moment) -> Bool {
        while true {
            var polled = pollfd(fd: PQsocket(pointer), events: Int16(events), revents: 0)
            let remaining = end - ContinuousClock.now
            guard remaining > .zero else { return false }
            let ready = poll(&polled, 1, remaining.pollMilliseconds)
            if ready > 0 || (ready < 0 && errno != EINTR) { return true }
        }
    }

    private static func start(_ keywords: [(name: String, value: String)]) -> OpaquePointer? {
        var names: [UnsafePointer<CChar>?] = keywords.map { strdup($0.name).map { UnsafePointer($0) } }
        var values: [UnsafePointer<CChar>?] = keywords.map { strdup($0.value).map { UnsafePointer($0) } }
        names.append(nil)
        values.append(nil)
        defer { for text in names + values { free(UnsafeMutablePointer(mutating: text)) } }
        return PQconnectStartParams(names, values, 1)
    }
}
