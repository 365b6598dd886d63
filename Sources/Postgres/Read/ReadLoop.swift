import CLibPQ

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// The thread that owns the pipelined connections: it drains the queue into them, reads results and resumes callers.
final class ReadLoop {
    /// A slot for one connection.
    private enum Place {
        case down(until: Moment)
        case opening
        case up(Pipeline)
    }

    /// The most reads behind one Sync: few enough that a failing read makes few others wait for a second turn.
    private static let batchMax = 256
    /// How often the limits are checked; checking on every turn would waste a busy thread's time.
    private static let limitsEvery = Duration.milliseconds(50)

    private let pool: ReadPool
    private let tick: (Moment) -> Void
    private var places: [Place]
    private var backoffs: [Backoff]
    private var again: [ReadAttempt] = []
    private var outage: DatabaseError?
    private var nextLimits: Moment

    init(_ pool: ReadPool, tick: @escaping (Moment) -> Void) {
        self.pool = pool
        self.tick = tick
        let now = ContinuousClock.now
        nextLimits = now
        places = Array(repeating: .down(until: now), count: pool.configuration.readConnections)
        backoffs = Array(repeating: Backoff(), count: pool.configuration.readConnections)
    }

    /// Serves until the pool is closed and nothing is in flight.
    func run() {
        while true {
            let now = ContinuousClock.now
            acceptOpened(at: now)
            if now >= nextLimits {
                nextLimits = now + Self.limitsEvery
                enforceLimits(at: now)
                tick(now)
            }
            if pool.waiting.isClosed, isIdle || !isUp { break }
            openWhereNeeded(at: now)
            dispatch(at: now)
            sleep(from: now)
        }
        for attempt in again { attempt.call.fail(.closed) }
    }

    private var isUp: Bool {
        places.contains { if case .up = $0 { true } else { false } }
    }

    private var isIdle: Bool {
        again.isEmpty
            && places.allSatisfy { place in
                switch place {
                case .down, .opening: true
                case .up(let pipeline): pipeline.inFlight == 0
                }
            }
    }

    /// Puts the connections that were opened meanwhile into their places.
    private func acceptOpened(at now: Moment) {
        for opened in pool.takeOpened() {
            do throws(DatabaseError) {
                let connection = try opened.outcome.get()
                let limit = pool.configuration.statementTimeout
                places[opened.place] = .up(try Pipeline(connection, statementTimeout: limit, at: now))
                if outage != nil { pool.note(.found(.reads)) }
                outage = nil
            } catch {
                places[opened.place] = .down(until: now + backoffs[opened.place].next())
                // While another connection is up, a failure of this one is no outage.
                guard !isUp else { continue }
                if outage != error { pool.note(.lost(.reads, error.message)) }
                outage = error
            }
        }
    }

    /// Has connections opened for the places without one, while reads wait.
    private func openWhereNeeded(at now: Moment) {
        guard !again.isEmpty || pool.waiting.count > 0 else { return }
        for (index, place) in places.enumerated() {
            guard case .down(let until) = place, until <= now else { continue }
            places[index] = .opening
            pool.open(place: index)
        }
    }

    /// Takes a broken connection out of use. The pause before the next one grows until a result has arrived.
    private func lose(_ pipeline: Pipeline, at index: Int, _ now: Moment) {
        let lost = pipeline.lose(at: now)
        pool.note(
            .detail(
                "The connection for reads was lost with \(lost.count) reads on their way, which are sent again: "
                    + "\(pipeline.connection.complaint)."))
        again.append(contentsOf: lost)
        places[index] = .down(until: now + backoffs[index].next())
    }

    /// Fails the callers that waited too long, and cancels reads that run too long.
    private func enforceLimits(at now: Moment) {
        let configuration = pool.configuration
        let limit = isUp ? configuration.waitLimit : pool.connectLimit
        let missing = { [outage] (limit: Duration) in
            outage ?? .cannotConnect("no answer within \(limit)", by: configuration.addressSource)
        }
        let error = isUp ? DatabaseError.waitedTooLong(for: "a read", limit) : missing(limit)
        for call in pool.takeWaiting(since: now - limit) { call.fail(error) }
        for attempt in again where now - attempt.waitStart >= limit { attempt.call.fail(error) }
        for call in pool.takeOverdue(at: now) + again.map(\.call) {
            call.expire(at: now, withoutConnection: isUp ? nil : missing)
        }
        again.removeAll { $0.call.caller.isFinished }

        let wholeLimit = configuration.waitLimit + configuration.statementTimeout + Connection.slack
        for index in places.indices {
            guard case .up(var pipeline) = places[index] else { continue }
            pipeline.enforceTimeout(at: now)
            pipeline.expire(at: now, after: wholeLimit)
            keep(pipeline, at: index, now)
        }
    }

    /// Puts a pipeline back into its place, or takes it out of use where it broke.
    private func keep(_ pipeline: Pipeline, at index: Int, _ now: Moment) {
        if pipeline.connection.isBroken {
            lose(pipeline, at: index, now)
        } else {
            places[index] = .up(pipeline)
        }
    }

    /// Sends the waiting reads to the connections that can take a batch.
    private func dispatch(at now: Moment) {
        while let (index, batchMin) = nextPlace, pool.waiting.count + again.count >= batchMin {
            let batch = nextBatch(atMost: Self.batchMax)
            guard !batch.isEmpty, case .up(var pipeline) = places[index] else { return }
            places[index] = .opening
            pipeline.send(batch, at: now)
            keep(pipeline, at: index, now)
        }
    }

    /// Returns the next reads to send: those that are sent again come first.
    private func nextBatch(atMost most: Int) -> [ReadAttempt] {
        var batch = Array(again.prefix(most))
        again.removeFirst(batch.count)
        for waiting in pool.take(atMost: most - batch.count) {
            batch.append(ReadAttempt(call: waiting.call, waitStart: waiting.waitStart))
        }
        return batch.filter { !$0.call.caller.isFinished }
    }

    /// The connection that takes the next batch first, and how many reads have to wait for that.
    private var nextPlace: (index: Int, batchMin: Int)? {
        places.enumerated().compactMap { index, place -> (index: Int, batchMin: Int)? in
            guard case .up(let pipeline) = place, let batchMin = pipeline.batchMin else { return nil }
            return (index, batchMin)
        }.min { $0.batchMin < $1.batchMin }
    }

    /// Sleeps in `poll` until a result arrives, a caller joins, or a limit passes; then reads what has arrived.
    private func sleep(from now: Moment) {
        var polled = [pollfd(fd: pool.wakeUp.readEnd, events: Int16(POLLIN), revents: 0)]
        var polledPlaces: [Int] = []
        for (index, place) in places.enumerated() {
            guard case .up(let pipeline) = place else { continue }
            let events = pipeline.needsFlush ? POLLIN | POLLOUT : POLLIN
            polled.append(pollfd(fd: pipeline.connection.socket, events: Int16(events), revents: 0))
            polledPlaces.append(index)
        }
        let timeout = sleepLimit(from: now)
        _ = poll(&polled, nfds_t(polled.count), timeout.pollMilliseconds)
        if polled[0].revents != 0 { pool.wakeUp.settle() }
        let awake = ContinuousClock.now
        for (index, descriptor) in zip(polledPlaces, polled.dropFirst()) where descriptor.revents != 0 {
            receive(index, at: awake)
        }
    }

    /// Returns how long to sleep: briefly while callers wait, so that limits are exact to a tenth of a second. Without
    /// any, callers of transactions may still wait for this thread to see their limit.
    private func sleepLimit(from now: Moment) -> Duration {
        let batchMin = isUp ? nextPlace.map { max($0.batchMin - again.count, 1) } : 1
        let waiting = pool.park(until: batchMin)
        if isUp, let batchMin, waiting >= batchMin { return .zero }
        if waiting == 0, isIdle { return min(.seconds(1), pool.connectLimit) }
        var limit = Duration.milliseconds(100)
        for case .down(let until) in places { limit = min(limit, max(until - now, .milliseconds(1))) }
        return limit
    }

    private func receive(_ index: Int, at now: Moment) {
        guard case .up(var pipeline) = places[index] else { return }
        places[index] = .opening
        let before = pipeline.inFlight
        again.append(contentsOf: pipeline.receive(at: now))
        if pipeline.inFlight < before { backoffs[index].reset() }
        if pipeline.needsFlush, !pipeline.connection.isBroken { pipeline.flush() }
        keep(pipeline, at: index, now)
    }
}
