import Synchronization

/// The queue of callers that wait for reads, and the thread that serves them all.
final class ReadPool: Sendable {
    /// The connection that a short-lived thread opened, or the reason it could not.
    struct Opened: Sendable {
        let place: Int
        let outcome: Result<Connection, DatabaseError>
    }

    private struct Memory {
        var line: WaitQueue<ReadCall>
        var opened: [Opened] = []
        /// How many waiting callers wake the thread; nil: none, because it is awake or can send nothing.
        var wakesAt: Int?
        var isLeaving = false
    }

    let configuration: DatabaseConfiguration
    let settings: ConnectionSettings
    let note: @Sendable (DatabaseNote) -> Void
    let wakeUp = WakeUp()
    private let memory: Mutex<Memory>
    private let latch = Latch(threads: 1)

    init(
        _ configuration: DatabaseConfiguration, _ settings: ConnectionSettings,
        note: @escaping @Sendable (DatabaseNote) -> Void
    ) {
        self.configuration = configuration
        self.settings = settings
        self.note = note
        memory = Mutex(Memory(line: WaitQueue(limit: configuration.queueLimit)))
    }

    /// Starts the thread; returns false when the system has none left. The thread calls `tick` at least once a second.
    func start(tick: @escaping @Sendable (Moment) -> Void) -> Bool {
        let hasStarted = startThread {
            ReadLoop(self, tick: tick).run()
            self.latch.countDown()
        }
        if !hasStarted { latch.countDown() }
        return hasStarted
    }

    /// Waits for the rows of a read. A caller that is cancelled gets its error at once.
    nonisolated(nonsending) func query(
        _ statement: Statement, _ parameters: [Parameter], isShared: Bool, within limit: Duration?
    ) async throws(DatabaseError) -> [Row] {
        if let error = DatabaseError.tooManyParameters(statement, parameters) { throw error }
        let call = ReadCall(
            statement: statement, parameters: parameters, isShared: isShared,
            limit: limit.map { ($0, ContinuousClock.now + $0) })
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Result<[Row], DatabaseError>, Never>) in
                call.caller.suspend(continuation)
                join(call)
            }
        } onCancel: {
            call.fail(.cancelled)
            if let ticket = call.caller.ticket { leave(ticket) }
        }
        return try outcome.get()
    }

    /// Puts a call into the queue, and wakes the thread where enough of them wait.
    private func join(_ call: ReadCall) {
        do {
            let (ticket, isEnough) = try memory.withLock { memory throws(DatabaseError) in
                let ticket = try memory.line.join(call, at: ContinuousClock.now)
                guard let enough = memory.wakesAt, memory.line.count >= enough else { return (ticket, false) }
                memory.wakesAt = nil
                return (ticket, true)
            }
            call.caller.ticket = ticket
            // A cancellation that came before the ticket was known could not leave the queue.
            if call.caller.isFinished { leave(ticket) }
            if isEnough { wakeUp.ring() }
        } catch {
            call.fail(error)
        }
    }

    /// Takes a call out of the queue, unless the thread has it.
    private func leave(_ ticket: Int) { _ = memory.withLock { $0.line.leave(ticket) } }

    /// Accepts no more reads: waiting callers get `.closed`, reads in flight finish.
    func beginClosing() {
        let waiting = memory.withLock { $0.line.close() }
        for call in waiting { call.fail(.closed) }
        wakeUp.ring()
    }

    /// Shortens the wait for a connection that is missing.
    func shortenWaitsForStop() {
        memory.withLock { $0.isLeaving = true }
        wakeUp.ring()
    }

    /// Waits until the thread has ended.
    func awaitEnd() async { await latch.wait() }
}

/// Functions for the thread.
extension ReadPool {
    /// The number of waiting reads, and whether the queue is closed to new ones.
    var waiting: (count: Int, isClosed: Bool) { memory.withLock { ($0.line.count, $0.line.isClosed) } }

    /// The longest wait of a caller for a connection.
    var connectLimit: Duration {
        memory.withLock { $0.isLeaving } ? DatabaseConfiguration.leavingTimeout : configuration.connectTimeout
    }

    func take(atMost most: Int) -> [WaitQueue<ReadCall>.Waiting] { memory.withLock { $0.line.take(atMost: most) } }

    func takeWaiting(since moment: Moment) -> [ReadCall] { memory.withLock { $0.line.takeWaiting(since: moment) } }

    /// Takes the calls whose callers wait no longer.
    func takeOverdue(at now: Moment) -> [ReadCall] {
        memory.withLock { $0.line.take { $0.isOverdue(at: now) } }
    }

    func takeOpened() -> [Opened] {
        memory.withLock { memory in
            defer { memory.opened = [] }
            return memory.opened
        }
    }

    /// Marks the thread as about to sleep until so many reads wait, and returns how many do: with some it is brief.
    /// Where `enough` is nil the thread can send nothing before an answer comes, so no read wakes it.
    func park(until enough: Int?) -> Int {
        memory.withLock { memory in
            memory.wakesAt = enough.flatMap { memory.line.count < $0 ? $0 : nil }
            return memory.line.count
        }
    }

    /// Opens a connection on a short-lived thread, because resolving a name may block for a long time.
    func open(place: Int) {
        let open: @Sendable () -> Void = {
            let outcome = Result { () throws(DatabaseError) in
                try Connection.open(self.settings, within: self.configuration.connectTimeout)
            }
            self.deliver(Opened(place: place, outcome: outcome))
        }
        if !startThread(open) {
            let error = DatabaseError.cannotConnect("the system has no thread left", by: configuration.addressSource)
            deliver(Opened(place: place, outcome: .failure(error)))
        }
    }

    private func deliver(_ opened: Opened) {
        memory.withLock { $0.opened.append(opened) }
        wakeUp.ring()
    }
}
