import Synchronization

/// The callers that wait for reads, and the thread that serves them all.
final class ReadPool: Sendable {
    /// A connection that a short-lived thread has opened, or why it could not.
    struct Opened: Sendable {
        let place: Int
        let outcome: Result<Connection, DatabaseError>
    }

    private struct Memory {
        var line: WaitingLine<ReadCall>
        var opened: [Opened] = []
        /// The thread sleeps and has to be woken for a new caller.
        var isParked = false
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
        memory = Mutex(Memory(line: WaitingLine(limit: configuration.queueLimit)))
    }

    /// Starts the thread; false when the system has none left. `tick` is called on it at least once a second.
    func start(tick: @escaping @Sendable (Moment) -> Void) -> Bool {
        let hasStarted = startThread {
            ReadLoop(self, tick: tick).run()
            self.latch.countDown()
        }
        if !hasStarted { latch.countDown() }
        return hasStarted
    }

    func query(_ statement: Statement, _ parameters: [Parameter]) async throws(DatabaseError) -> [Row] {
        if let error = DatabaseError.tooManyParameters(statement, parameters) { throw error }
        let call = ReadCall(statement: statement, parameters: parameters)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Result<[Row], DatabaseError>, Never>) in
                call.caller.suspend(continuation)
                join(call)
            }
        } onCancel: {
            call.fail(.cancelled)
            if let ticket = call.caller.ticket { leave(ticket) }
        }
        return try outcome.get()
    }

    private func join(_ call: ReadCall) {
        do {
            let (ticket, isParked) = try memory.withLock { memory throws(DatabaseError) in
                let ticket = try memory.line.join(call, at: ContinuousClock.now)
                defer { memory.isParked = false }
                return (ticket, memory.isParked)
            }
            call.caller.ticket = ticket
            // A cancellation that came before the ticket was known could not leave.
            if call.caller.isFinished { leave(ticket) }
            if isParked { wakeUp.ring() }
        } catch {
            call.fail(error)
        }
    }

    private func leave(_ ticket: Int) { _ = memory.withLock { $0.line.leave(ticket) } }

    /// Takes no more reads: those who wait get `.closed`, what is on its way finishes.
    func beginClosing() {
        let waiting = memory.withLock { $0.line.close() }
        for call in waiting { call.fail(.closed) }
        wakeUp.ring()
    }

    /// Waits until the thread has ended.
    func awaitEnd() async { await latch.wait() }
}

/// What the thread asks for.
extension ReadPool {
    /// How many wait, and whether more may come.
    var waiting: (count: Int, isClosed: Bool) { memory.withLock { ($0.line.count, $0.line.isClosed) } }

    func take(atMost most: Int) -> [WaitingLine<ReadCall>.Waiting] {
        memory.withLock { $0.line.take(atMost: most) }
    }

    func takeWaiting(since moment: Moment) -> [ReadCall] { memory.withLock { $0.line.takeWaiting(since: moment) } }

    func takeOpened() -> [Opened] {
        memory.withLock { memory in
            defer { memory.opened = [] }
            return memory.opened
        }
    }

    /// Says that the thread is about to sleep; answers how many wait, for then it should not sleep long.
    func park() -> Int {
        memory.withLock { memory in
            memory.isParked = memory.line.count == 0
            return memory.line.count
        }
    }

    /// Opens a connection on a short-lived thread, because resolving a name may block for long.
    func open(place: Int) {
        let open: @Sendable () -> Void = {
            let outcome: Result<Connection, DatabaseError>
            do throws(DatabaseError) {
                outcome = .success(try Connection.open(self.settings, within: self.configuration.connectTimeout))
            } catch {
                outcome = .failure(error)
            }
            self.deliver(Opened(place: place, outcome: outcome))
        }
        if !startThread(open) {
            deliver(Opened(place: place, outcome: .failure(.cannotConnect("the system has no thread left"))))
        }
    }

    private func deliver(_ opened: Opened) {
        memory.withLock { $0.opened.append(opened) }
        wakeUp.ring()
    }
}
