import CLibPQ
import DequeModule

/// One read and its caller.
struct ReadCall: Sendable {
    let statement: Statement
    let parameters: [Parameter]
    /// Whether equal reads of other callers share its statement.
    let isShared: Bool
    /// How long its caller waits, and when that is over; nil: as long as the pool lets it.
    let limit: (wait: Duration, end: Moment)?
    let caller = PendingCall<[Row], DatabaseError>()

    func fail(_ error: DatabaseError) { caller.finish(.failure(error)) }

    /// Returns whether the caller waits no longer.
    func isOverdue(at now: Moment) -> Bool { limit.map { $0.end <= now } ?? false }

    /// Fails the caller when it waits no longer: because there is no connection, or because no answer comes.
    func expire(at now: Moment, withoutConnection outage: ((Duration) -> DatabaseError)? = nil) {
        guard let limit, isOverdue(at: now) else { return }
        fail(outage?(limit.wait) ?? .waitedTooLong(for: "'\(statement.name)'", limit.wait))
    }
}

/// A read in flight. After the first failure of each kind it is sent again; after a second one of that kind it fails.
struct ReadAttempt {
    let call: ReadCall
    /// The start of the caller's wait; after a lost connection, the moment of the loss.
    var waitStart: Moment
    /// Whether it was sent again because its connection was lost.
    var wasLost = false
    /// Whether it was sent again because the server could no longer use its prepared statement.
    var wasStale = false
    /// Whether it was sent again because a cancellation meant for the read before it ended it.
    var wasHit = false
    /// Whether it is sent by itself because the server refused the statement that it shared.
    var isAlone = false
}

/// One connection in pipeline mode: many reads in flight at once, answered in the order they were sent.
///
/// For the server, everything up to a Sync is one transaction: when one read fails, the later ones of its batch do not
/// run. `receive` returns them to be sent again, which is safe because they are reads. In a borrowed session such a
/// transaction also carries its own settings, and one batch is under way at a time: a pooler that sees one end while the
/// next is in flight may already lend the session to another client. In a session of our own the next one may wait at the
/// server, which then does not wait for this process.
struct Pipeline {
    private enum Entry {
        case settings
        case preparation(Statement, serverName: String)
        case run([ReadAttempt], serverName: String)
        case sync
    }

    let connection: Connection
    private let statementTimeout: Duration
    private var entries: Deque<Entry> = []
    /// Whether the result of the first entry was read but not the NULL that ends it.
    private var awaitsEnd = false
    private var firstSince: Moment
    private var wasCancelled = false
    private var lastCancellation: Moment?
    /// The number of reads in flight.
    private(set) var inFlight = 0
    /// The Syncs in flight.
    private var syncs = 0
    /// How many reads have to wait before the next batch is sent; nil: none may be sent. While a batch is under way, reads
    /// gather until they are as many as are in flight: larger batches cost the server and this thread fewer turns.
    var batchMin: Int? {
        if entries.isEmpty { return 1 }
        guard case .own = connection.session, syncs < 2 else { return nil }
        return max(inFlight, 1)
    }
    /// Whether bytes wait to be written.
    private(set) var needsFlush = false

    init(_ connection: Connection, statementTimeout: Duration, at now: Moment) throws(DatabaseError) {
        self.connection = connection
        self.statementTimeout = statementTimeout
        firstSince = now
        guard PQenterPipelineMode(connection.pointer) == 1 else {
            throw DatabaseError(.cannotConnect, "The connection for reads cannot be used: \(connection.complaint).")
        }
    }

    /// Sends a batch and one Sync. Reads that cannot be sent count as in flight all the same; `lose` returns them.
    mutating func send(_ attempts: [ReadAttempt], at now: Moment) {
        if entries.isEmpty { begin(at: now) }
        switch connection.session {
        case .own: sendNamed(attempts)
        case .borrowed: sendWhole(attempts)
        }
        inFlight += attempts.count
        sync()
        flush()
    }

    /// Sends a batch to our own session, whose statements are prepared.
    private mutating func sendNamed(_ attempts: [ReadAttempt]) {
        let named = SharedRun.all(of: attempts).map { ($0, serverName(of: $0)) }
        for (run, serverName) in named {
            if !connection.sendRun(serverName, run.parameters) { connection.isBroken = true }
            entries.append(.run(run.attempts, serverName: serverName))
        }
    }

    /// Sends a batch to a borrowed session, with its settings and whole statements.
    private mutating func sendWhole(_ attempts: [ReadAttempt]) {
        if !connection.sendWhole(connection.settings.statement, []) { connection.isBroken = true }
        entries.append(.settings)
        for run in SharedRun.all(of: attempts) {
            if !connection.sendWhole(run.statement, run.parameters) { connection.isBroken = true }
            entries.append(.run(run.attempts, serverName: ""))
        }
    }

    /// Returns the server's name of the statement. A preparation has its own Sync, so that no failing read aborts it.
    private mutating func serverName(of run: SharedRun) -> String {
        if let known = connection.prepared.serverName(of: run.statement, run.parameters) { return known }
        let serverName = connection.prepared.begin(run.statement, run.parameters)
        if !connection.sendPreparation(serverName, run.statement, run.parameters) { connection.isBroken = true }
        entries.append(.preparation(run.statement, serverName: serverName))
        sync()
        return serverName
    }

    /// Sends a Sync, the end of a transaction for the server.
    private mutating func sync() {
        if PQpipelineSync(connection.pointer) != 1 { connection.isBroken = true }
        entries.append(.sync)
        syncs += 1
    }

    /// Writes the pending bytes.
    mutating func flush() {
        let flushed = PQflush(connection.pointer)
        if flushed < 0 { connection.isBroken = true }
        needsFlush = flushed == 1
    }

    /// Reads the bytes that have arrived, resumes callers and returns the reads to send again. Sets `isBroken` on loss.
    mutating func receive(at now: Moment) -> [ReadAttempt] {
        if PQconsumeInput(connection.pointer) == 0 { connection.isBroken = true }
        var again: [ReadAttempt] = []
        // PQgetResult blocks for ever when nothing is outstanding, and blocks while PQisBusy.
        while let entry = entries.first, PQisBusy(connection.pointer) == 0 {
            guard let result = PQgetResult(connection.pointer) else {
                guard awaitsEnd else { break }
                awaitsEnd = false
                next(at: now)
                continue
            }
            take(result, for: entry, at: now, &again)
            if connection.isBroken { break }
        }
        if PQstatus(connection.pointer) == CONNECTION_BAD { connection.isBroken = true }
        return again
    }

    private mutating func take(
        _ result: OpaquePointer, for entry: Entry, at now: Moment, _ again: inout [ReadAttempt]
    ) {
        switch entry {
        case .sync:
            guard case .sync = ServerAnswer(result, of: "Sync", over: connection) else {
                connection.isBroken = true
                return
            }
            next(at: now)
        case .settings:
            awaitsEnd = true
            guard case .rows = ServerAnswer(result, of: "settings", over: connection) else {
                connection.isBroken = true
                return
            }
        case .preparation(let statement, let serverName):
            awaitsEnd = true
            let answer = ServerAnswer(result, of: statement.name, over: connection)
            if case .failure(let error) = answer { failPreparation(statement, serverName, error) }
            if answer.endsConnection { connection.isBroken = true }
        case .run(let attempts, let serverName):
            awaitsEnd = true
            let answer = ServerAnswer(result, of: attempts[0].call.statement.name, over: connection)
            settle(attempts, serverName, answer, at: now, &again)
        }
    }

    /// Resumes the callers of a run with its answer, or adds their reads to those that are sent again.
    private mutating func settle(
        _ attempts: [ReadAttempt], _ serverName: String, _ answer: ServerAnswer, at now: Moment,
        _ again: inout [ReadAttempt]
    ) {
        switch answer {
        case .rows(let table): finish(attempts, with: table)
        case .aborted: again.append(contentsOf: attempts)
        case .failure(let error):
            if error.isStalePreparation {
                connection.prepared.forget(attempts[0].call.statement, serverName: serverName)
            }
            for attempt in attempts {
                if let repeated = repeated(attempt, of: attempts.count, after: error, at: now) {
                    again.append(repeated)
                } else {
                    attempt.call.fail(error)
                }
            }
        case .lost, .unexpected, .sync: connection.isBroken = true
        }
    }

    /// Resumes the callers of a run, each with its own rows.
    private func finish(_ attempts: [ReadAttempt], with table: ResultTable) {
        guard attempts[0].call.isShared else { return attempts[0].call.caller.finish(.success(table.rows)) }
        do throws(DatabaseError) {
            for (attempt, rows) in zip(attempts, try table.rows(of: attempts.count)) {
                attempt.call.caller.finish(.success(rows))
            }
        } catch {
            for attempt in attempts { attempt.call.fail(error) }
        }
    }

    /// Returns a read as it is sent again after a failure of the statement that `count` reads share; nil: it fails.
    private func repeated(
        _ attempt: ReadAttempt, of count: Int, after error: DatabaseError, at now: Moment
    ) -> ReadAttempt? {
        var attempt = attempt
        if error.isStalePreparation, !attempt.wasStale {
            attempt.wasStale = true
        } else if error.kind == .timedOut {
            guard wasMeantForPredecessor(at: now), !attempt.wasHit else { return nil }
            attempt.wasHit = true
        } else if count > 1 {
            attempt.isAlone = true
        } else {
            return nil
        }
        return attempt
    }

    /// Fails every read of a statement that does not parse: all of its callers would get the same error.
    private mutating func failPreparation(_ statement: Statement, _ serverName: String, _ error: DatabaseError) {
        connection.prepared.forget(statement, serverName: serverName)
        for case .run(let attempts, serverName) in entries { for attempt in attempts { attempt.call.fail(error) } }
    }

    /// Goes on to the next entry, whose time begins now.
    private mutating func next(at now: Moment) {
        switch entries.popFirst() {
        case .run(let attempts, _): inFlight -= attempts.count
        case .sync: syncs -= 1
        case .settings, .preparation, nil: break
        }
        begin(at: now)
    }

    /// Starts the time of the first entry.
    private mutating func begin(at now: Moment) {
        firstSince = now
        wasCancelled = false
    }
}

/// Limits and loss.
extension Pipeline {
    /// Returns whether a cancellation hit the wrong read: it reaches whatever runs when it arrives.
    private func wasMeantForPredecessor(at now: Moment) -> Bool {
        guard let lastCancellation else { return false }
        return now - firstSince < statementTimeout && now - lastCancellation < Connection.slack * 2
    }

    /// Asks the server to cancel a read that runs too long, and gives the connection up when that does not help.
    mutating func enforceTimeout(at now: Moment) {
        guard !entries.isEmpty else { return }
        let elapsed = now - firstSince
        if elapsed > statementTimeout + Connection.slack * 2 {
            if case .run(let attempts, _) = entries.first {
                for attempt in attempts { attempt.call.fail(.statementTimedOut(attempt.call.statement.name)) }
            }
            connection.isBroken = true
        } else if elapsed > statementTimeout + Connection.slack, !wasCancelled {
            wasCancelled = true
            lastCancellation = now
            connection.cancelFromAnotherThread()
        }
    }

    /// The reads in flight.
    private var attempts: [ReadAttempt] {
        entries.flatMap { entry -> [ReadAttempt] in if case .run(let attempts, _) = entry { attempts } else { [] } }
    }

    /// Fails the callers that have waited for `limit`, or for their own; their reads go on and the results are dropped.
    func expire(at now: Moment, after limit: Duration) {
        for attempt in attempts {
            attempt.call.expire(at: now)
            guard attempt.waitStart <= now - limit else { continue }
            attempt.call.fail(.waitedTooLong(for: "'\(attempt.call.statement.name)'", limit))
        }
    }

    /// Returns the reads in flight when the connection broke; each is sent again once.
    func lose(at now: Moment) -> [ReadAttempt] {
        var again: [ReadAttempt] = []
        for var attempt in attempts where !attempt.call.caller.isFinished {
            if attempt.wasLost {
                attempt.call.fail(.connectionLost(during: attempt.call.statement.name, connection.complaint))
            } else {
                attempt.wasLost = true
                attempt.waitStart = now
                again.append(attempt)
            }
        }
        return again
    }
}

/// Reads that one statement answers: a single one, or those that share it.
private struct SharedRun {
    let attempts: [ReadAttempt]
    let statement: Statement
    /// A shared statement takes arrays of text, with an element of each read.
    let parameters: [Parameter]

    private init(_ attempts: [ReadAttempt]) {
        let first = attempts[0].call
        self.attempts = attempts
        statement = first.statement
        parameters =
            first.isShared
            ? first.parameters.indices.map { index in
                Parameter(.texts, BinaryForm.array(of: .text, attempts.map { $0.call.parameters[index].bytes }))
            } : first.parameters
    }

    /// Puts the reads of a batch together.
    static func all(of attempts: [ReadAttempt]) -> [SharedRun] {
        var groups: [[ReadAttempt]] = []
        var places: [String: Int] = [:]
        for attempt in attempts {
            let name = attempt.call.isShared && !attempt.isAlone ? attempt.call.statement.name : nil
            if let place = name.flatMap({ places[$0] }) {
                groups[place].append(attempt)
            } else {
                if let name { places[name] = groups.count }
                groups.append([attempt])
            }
        }
        return groups.map(SharedRun.init)
    }
}
