import CLibPQ

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// One `PGconn`. It may move from thread to thread, but only one at a time uses it: the thread that opened it hands it
/// over and forgets it.
final class Connection: @unchecked Sendable {
    let pointer: OpaquePointer
    let settings: TransactionSettings
    /// Borrowed until it is known to be our own: what is right there is right everywhere.
    var session = Session.borrowed
    var prepared = PreparedStatements()
    /// Set once the connection cannot be used any more.
    var isBroken = false

    /// Takes over an open connection.
    init(owning pointer: OpaquePointer, _ settings: TransactionSettings) {
        self.pointer = pointer
        self.settings = settings
        // We never want to wait inside a send: the server may itself be waiting for us to read.
        PQsetnonblocking(pointer, 1)
    }

    deinit { PQfinish(pointer) }

    var socket: Int32 { PQsocket(pointer) }

    /// libpq's last words about this connection, on one line.
    var complaint: String {
        let text = oneLine(String(cString: PQerrorMessage(pointer)))
        return text.isEmpty ? "the server closed it" : text
    }

    /// Whether an idle connection still works, as far as can be seen without asking the server.
    func seemsAlive() -> Bool {
        guard !isBroken, PQstatus(pointer) == CONNECTION_OK else { return false }
        guard waitForSocket(POLLIN, until: ContinuousClock.now) else { return true }
        return PQconsumeInput(pointer) == 1 && PQstatus(pointer) == CONNECTION_OK
    }

    /// Waits until the socket is ready; false when the moment passed first.
    func waitForSocket(_ events: Int32, until limit: Moment?) -> Bool {
        var polled = pollfd(fd: socket, events: Int16(events), revents: 0)
        while true {
            let milliseconds = limit.map { ($0 - ContinuousClock.now).pollMilliseconds } ?? -1
            let ready = poll(&polled, 1, milliseconds)
            if ready > 0 { return true }
            if ready < 0, errno == EINTR { continue }
            if ready < 0 { return true }
            if let limit, limit > ContinuousClock.now { continue }
            return false
        }
    }

    /// What `PQcancel` needs; may be used on another thread.
    func cancellation() -> Cancellation? { PQgetCancel(pointer).map(Cancellation.init(owning:)) }
}

/// Asks the server, over a connection of its own, to cancel what another connection runs. It only holds a copy of where and
/// whom to ask, which libpq lets any thread use.
final class Cancellation: @unchecked Sendable {
    private let pointer: OpaquePointer

    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { PQfreeCancel(pointer) }

    /// Blocks until the server took the request or refused it; whether anything was cancelled is not known.
    func send() {
        var reason: [CChar] = Array(repeating: 0, count: 256)
        _ = PQcancel(pointer, &reason, Int32(reason.count))
    }
}
