import CLibPQ

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Running one thing after another and waiting for each, on the thread of a writer.
extension Connection {
    /// How much later than the server we enforce a time-out, and how long we then wait for the cancellation to work.
    static let slack = Duration.seconds(2)

    /// Runs a statement; in our own session it is prepared first if need be.
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

    /// Runs SQL text by the simple protocol; the answer to its last command, or its first failure.
    func command(_ sql: String, named name: String, within limit: Duration?) -> ServerAnswer {
        collect(PQsendQuery(pointer, sql) == 1, name, within: limit)
    }

    /// The rows of an answer; throws what else it is.
    func rows(of answer: ServerAnswer, _ name: String) throws(DatabaseError) -> ResultTable {
        switch answer {
        case .rows(let table): return table
        case .failure(let error):
            // What made one stale (a migration, a pooler's other server) likely made all of them stale.
            if error.isStalePreparation { prepared.forgetAll() }
            throw error
        case .lost(let reason), .unexpected(let reason): throw .connectionLost(during: name, reason)
        case .aborted, .sync: throw .connectionLost(during: name, "an answer that belongs to a pipeline")
        }
    }

    /// Reads all results of what was sent. When the limit passes the server is asked to cancel; when that does not help
    /// the connection is given up.
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

    /// Connecting to cancel may block for as long as the network likes, so no one waits for it.
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
    /// Whether the connection cannot be used after this.
    var endsConnection: Bool {
        switch self {
        case .lost, .unexpected: true
        case .rows, .failure, .aborted, .sync: false
        }
    }
}
