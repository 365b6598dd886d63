import CLibPQ

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// One `PGconn`. It may move from thread to thread, but only one thread at a time uses it: the thread that opens it
/// passes it on and keeps no reference.
final class Connection: @unchecked Sendable {
    let pointer: OpaquePointer
    let settings: TransactionSettings
    /// `.borrowed` until it is known to be our own: code that is right for a borrowed session is right for every
    /// session.
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
