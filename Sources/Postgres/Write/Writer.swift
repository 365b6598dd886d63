import Dispatch

/// Work that needs an exclusive connection, with its type erased.
struct WriteCall: Sendable {
    /// Does the work and resumes its caller. Returns the reason when the work never began, so that another connection
    /// may be tried.
    let run: @Sendable (Connection) -> DatabaseError?
    /// Fails the caller: its work was not done.
    let fail: @Sendable (DatabaseError) -> Void
}

/// One thread with one connection, which serves the callers of a pool one by one.
final class Writer {
    private let pool: WritePool
    private var connection: Connection?
    private var backoff = Backoff()

    init(_ pool: WritePool) { self.pool = pool }

    /// Serves until the pool is closed and no caller waits.
    func run() {
        while pool.awaitCaller() {
            // The writer takes the next caller only when it has a connection: waiting callers can then learn of an
            // outage while this thread is busy connecting.
            guard let connection = connected() else {
                pool.pause(for: backoff.next())
                continue
            }
            guard let waiting = pool.take() else { continue }
            serve(waiting.call, on: connection)
        }
        disconnect()
    }

    private func serve(_ call: WriteCall, on first: Connection) {
        let begun = ContinuousClock.now
        var connection = first
        while let failure = call.run(connection) {
            disconnect()
            pool.note(
                .detail("A connection for transactions was lost while idle; connecting again. \(failure.message)"))
            guard let another = connectedAgain(since: begun) else {
                call.fail(pool.outage)
                return
            }
            connection = another
        }
        if connection.isBroken {
            disconnect()
            pool.note(
                .detail("A connection for transactions was lost or given up; the next transaction opens another."))
        }
    }

    private func connectedAgain(since begun: Moment) -> Connection? {
        while ContinuousClock.now - begun < pool.connectLimit {
            if let connection = connected() { return connection }
            pool.pause(for: backoff.next())
        }
        return nil
    }

    /// Returns the connection, and opens one when none seems alive; nil when that fails.
    private func connected() -> Connection? {
        if let connection {
            if connection.seemsAlive() { return connection }
            disconnect()
        }
        do {
            let opened = try pool.open()
            connection = opened
            backoff.reset()
            pool.connected()
            return opened
        } catch {
            pool.failedToConnect(error)
            return nil
        }
    }

    private func disconnect() {
        guard connection != nil else { return }
        connection = nil
        pool.disconnected()
    }
}
