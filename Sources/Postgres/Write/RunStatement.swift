import CLibPQ

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Statements that run one at a time, each awaited, on a writer's thread.
extension Connection {
    /// How much later than the server we enforce a time-out, and how long we then wait for the cancellation to take
    /// effect.
    static let slack = Duration.seconds(2)

    /// Runs a statement; in our own session it is prepared first if necessary.
    func run(
        _ statement: Statement, _ parameters: [Parameter], within limit: Duration
    ) throws(DatabaseError) -> ResultTable {
        if let error = DatabaseError.tooManyParameters(statement, parameters) { throw error }
        switch session {
        case .own:
            let serverName = try preparedName(of: statement, parameters, within: limit)
            let wasSent = sendRun(serverName, parameters)
            return try rows(of: collect(wasSent, statement.name, within: limit), statement.name)
        case .borrowed:
            let wasSent = sendWhole(statement, parameters)
            return try rows(of: collect(wasSent, statement.name, within: limit), statement.name)
        }
    }

    private func preparedName(
        of statement: Statement, _ parameters: [Parameter], within limit: Duration
    ) throws(DatabaseError) -> String {
        if let known = prepared.serverName(of: statement, parameters) { return known }
        let serverName = prepared.begin(statement, parameters)
        let wasSent = sendPreparation(serverName, statement, parameters)
        do {
            _ = try rows(of: collect(wasSent, statement.name, within: limit), statement.name)
        } catch {
            prepared.forget(statement, serverName: serverName)
            throw error
        }
        return serverName
    }

    /// Runs SQL text by the simple protocol; returns the answer to its last command, or its first failure.
    func command(_ sql: String, named name: String, within limit: Duration?) -> ServerAnswer {
        collect(PQsendQuery(pointer, sql) == 1, name, within: limit)
    }

    /// Returns the rows of an answer; throws an error for any other answer.
    func rows(of answer: ServerAnswer, _ name: String) throws(DatabaseError) -> ResultTable {
        switch answer {
        case .rows(let table): return table
        case .failure(let error):
            // The cause of one stale statement (a migration, a pooler's other server) probably made all of them stale.
            if error.isStalePreparation { prepared.forgetAll() }
            throw error
        case .lost(let reason), .unexpected(let reason): throw .connectionLost(during: name, reason)
        case .aborted, .sync: throw .connectionLost(during: name, "an answer that belongs to a pipeline")
        }
    }

    /// Reads all results of the request. When the limit passes, it asks the server to cancel; when that does not help,
    /// it gives the connection up.
    private func collect(_ wasSent: Bool, _ name: String, within limit: Duration?) -> ServerAnswer {
        guard wasSent else { return lose() }
        var end = limit.map { ContinuousClock.now + $0 + Self.slack }
        var wasCancelled = false
        var collected: ServerAnswer?
        while true {
            let flushed = PQflush(pointer)
            if flushed < 0 { return lose() }
            if flushed == 0, PQisBusy(pointer) == 0 {
                guard let result = PQgetResult(pointer) else { break }
                let answer = ServerAnswer(result, of: name)
                if answer.endsConnection || PQstatus(pointer) == CONNECTION_BAD {
                    isBroken = true
                    return answer.endsConnection ? answer : lose()
                }
                collected = Self.first(failure: collected, or: answer)
                continue
            }
            if waitForSocket(flushed == 0 ? POLLIN : POLLIN | POLLOUT, until: end) {
                if PQconsumeInput(pointer) == 0 { return lose() }
            } else if wasCancelled {
                isBroken = true
                return .failure(.statementTimedOut(name))
            } else {
                wasCancelled = true
                end = ContinuousClock.now + Self.slack
                cancelFromAnotherThread()
            }
        }
        return collected ?? lose()
    }

    /// Sends a cancellation from another thread: connecting for it may block for as long as the network does.
    func cancelFromAnotherThread() {
        guard let cancellation = cancellation() else { return }
        _ = startThread { cancellation.send() }
    }

    private func lose() -> ServerAnswer {
        isBroken = true
        return .lost(reason: complaint)
    }

    private static func first(failure earlier: ServerAnswer?, or answer: ServerAnswer) -> ServerAnswer {
        if case .failure = earlier, let earlier { return earlier }
        return answer
    }
}

extension ServerAnswer {
    /// Whether the connection is unusable after this answer.
    var endsConnection: Bool {
        switch self {
        case .lost, .unexpected: true
        case .rows, .failure, .aborted, .sync: false
        }
    }
}
