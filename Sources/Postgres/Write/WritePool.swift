import Dispatch
import Synchronization

/// The queue of callers that wait for an exclusive connection, and the state its writers share.
final class WritePool: Sendable {
    private struct Memory {
        var line: WaitQueue<WriteCall>
        var connectedWriters = 0
        var outage: DatabaseError?
        var isLeaving = false
    }

    let configuration: DatabaseConfiguration
    let settings: ConnectionSettings
    let note: @Sendable (DatabaseNote) -> Void
    private let memory: Mutex<Memory>
    /// Signalled for each caller that joins, and for each writer that found no server.
    private let work = DispatchSemaphore(value: 0)
    /// Signalled once for each writer, at the end. A pause waits for it and not for `work`, whose signals callers need.
    private let closing = DispatchSemaphore(value: 0)
    private let latch: Latch

    init(
        _ configuration: DatabaseConfiguration, _ settings: ConnectionSettings,
        note: @escaping @Sendable (DatabaseNote) -> Void
    ) {
        self.configuration = configuration
        self.settings = settings
        self.note = note
        memory = Mutex(Memory(line: WaitQueue(limit: configuration.queueLimit)))
        latch = Latch(threads: configuration.writeConnections)
    }

    /// Starts the writers' threads; returns false when the system has none left.
    func start() -> Bool {
        (0..<configuration.writeConnections).map { _ in
            let hasStarted = startThread {
                Writer(self).run()
                self.latch.countDown()
            }
            if !hasStarted { latch.countDown() }
            return hasStarted
        }.allSatisfy { $0 }
    }

    /// Waits for a turn and does the work on a writer's thread. A caller cancelled while it waits leaves the queue.
    /// Running work is always awaited, because its outcome matters.
    func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) -> TransactionEnd<Value>
    ) async throws -> Value {
        let caller = PendingCall<Value, any Error>()
        let call = WriteCall(
            run: { connection in
                switch body(connection) {
                case .neverBegan(let error): return error
                case .ended(let outcome):
                    caller.finish(outcome)
                    return nil
                }
            }, fail: { caller.finish(.failure($0)) })
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Result<Value, any Error>, Never>) in
                caller.suspend(continuation)
                join(call, caller)
            }
        } onCancel: {
            if let ticket = caller.ticket { leave(ticket) }
        }
        return try outcome.get()
    }

    private func join<Value: Sendable>(_ call: WriteCall, _ caller: PendingCall<Value, any Error>) {
        do {
            let ticket = try memory.withLock { memory throws(DatabaseError) in
                try memory.line.join(call, at: ContinuousClock.now)
            }
            caller.ticket = ticket
            work.signal()
            // A cancellation that came before the ticket was known could not leave the queue.
            if Task.isCancelled { leave(ticket) }
        } catch {
            call.fail(error)
        }
    }

    /// Takes a cancelled call out of the queue, unless a writer has it.
    private func leave(_ ticket: Int) { memory.withLock { $0.line.leave(ticket) }?.fail(.cancelled) }

    /// Fails the callers that have waited too long: for a connection when there is none, otherwise for their turn.
    func expire(at now: Moment) {
        let (expired, error) = memory.withLock { memory -> ([WriteCall], DatabaseError) in
            let isConnected = memory.connectedWriters > 0
            let limit = isConnected ? configuration.waitLimit : connectLimit(memory)
            return (
                memory.line.takeWaiting(since: now - limit),
                isConnected ? .waitedTooLong(for: "a transaction", limit) : missing(memory)
            )
        }
        for call in expired { call.fail(error) }
    }

    /// Accepts no more work: waiting callers get `.closed`, running work finishes.
    func beginClosing() {
        let waiting = memory.withLock { $0.line.close() }
        for call in waiting { call.fail(.closed) }
        for _ in 0..<configuration.writeConnections {
            work.signal()
            closing.signal()
        }
    }

    /// Shortens the wait for a connection that is missing.
    func shortenWaitsForStop() { memory.withLock { $0.isLeaving = true } }

    /// Waits until all writers have ended, except those that try to connect during an outage.
    func awaitEnd() async { await latch.wait() }

    /// Returns the longest wait for a connection: a short one while the process stops.
    private func connectLimit(_ memory: Memory) -> Duration {
        memory.isLeaving ? DatabaseConfiguration.leavingTimeout : configuration.connectTimeout
    }

    /// Returns why there is no connection.
    private func missing(_ memory: Memory) -> DatabaseError {
        memory.outage
            ?? .cannotConnect("no answer within \(connectLimit(memory))", by: configuration.addressSource)
    }
}

/// Functions for the writers, called on their threads.
extension WritePool {
    /// The number of waiting callers and of open connections.
    var load: (waiting: Int, connections: Int) { memory.withLock { ($0.line.count, $0.connectedWriters) } }

    /// The reason there is no connection.
    var outage: DatabaseError { memory.withLock { missing($0) } }

    /// The longest wait of a caller for a connection.
    var connectLimit: Duration { memory.withLock { connectLimit($0) } }

    /// Opens a connection. During an outage the end of the pool does not wait for it.
    func open() throws(DatabaseError) -> Connection {
        let isAwaited = memory.withLock { $0.outage == nil }
        if !isAwaited { latch.countDown() }
        defer { if !isAwaited { latch.countUp() } }
        return try Connection.open(settings, within: connectLimit)
    }

    /// Sleeps until a caller waits; returns false when the pool is closed and none does.
    func awaitCaller() -> Bool {
        while true {
            let (isEmpty, isClosed) = memory.withLock { ($0.line.count == 0, $0.line.isClosed) }
            if !isEmpty { return true }
            if isClosed { return false }
            work.wait()
        }
    }

    /// Takes the next caller; nil when another writer was faster.
    func take() -> WaitQueue<WriteCall>.Waiting? { memory.withLock { $0.line.take() } }

    /// Sleeps through a pause between two attempts to connect; closing the pool ends it.
    func pause(for pause: Duration) {
        guard !memory.withLock({ $0.line.isClosed }) else { return }
        _ = closing.wait(timeout: .now() + .milliseconds(Int(pause.pollMilliseconds)))
    }

    /// Counts a thread that has its session; the first one after an outage says that the database is found again.
    func connected() {
        let wasOut = memory.withLock { memory in
            memory.connectedWriters += 1
            defer { memory.outage = nil }
            return memory.outage != nil
        }
        if wasOut { note(.found(.transactions)) }
    }

    /// Counts a thread that has its session no longer.
    func disconnected() { memory.withLock { $0.connectedWriters -= 1 } }

    /// Notes that there is no server, and wakes another writer: it may rest on a connection to the same server, and as long
    /// as one seems connected, callers wait for their turn and not for a connection.
    func failedToConnect(_ error: DatabaseError) {
        defer { work.signal() }
        // While another writer is connected, this failure is no outage: the attempt may have begun earlier.
        let isNews = memory.withLock { memory in
            guard memory.connectedWriters == 0 else { return false }
            defer { memory.outage = error }
            return memory.outage != error
        }
        if isNews { note(.lost(.transactions, error.message)) }
    }
}

/// Work that needs an exclusive connection, with its type erased.
struct WriteCall: Sendable {
    /// Does the work and resumes its caller; returns the reason when it never began: another connection may be tried.
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
            // The next caller waits in the queue until there is a connection, and so can learn of an outage.
            guard let connection = connected() else {
                pool.pause(for: backoff.next())
                continue
            }
            guard let waiting = pool.take() else { continue }
            serve(waiting.call, on: connection)
        }
        disconnect()
    }

    /// Does the work of a caller. Where it never began because the connection was dead, it tries others for a while.
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

    /// Returns a new connection after a dead one; nil when none can be made within the limit.
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
