import Synchronization

/// An instant of a clock that only moves forward; used for limits, never stored.
typealias Moment = ContinuousClock.Instant

extension Duration {
    /// Whole milliseconds for `poll`, rounded up so that the limit has passed when `poll` returns; 0 when negative.
    var pollMilliseconds: Int32 {
        guard self > .zero else { return 0 }
        let (seconds, attoseconds) = components
        guard seconds < 1_000_000 else { return 1_000_000_000 }
        return Int32(seconds) * 1_000 + Int32(attoseconds / 1_000_000_000_000_000) + 1
    }
}

/// A suspended caller, resumed exactly once by the first of: a result, a limit, its cancellation.
final class PendingCall<Answer: Sendable, Failure: Error>: Sendable {
    typealias Outcome = Result<Answer, Failure>

    private enum State {
        case running
        case suspended(UnsafeContinuation<Outcome, Never>)
        case finished(Outcome)
        case resumed
    }

    private struct Memory {
        var state = State.running
        var ticket: Int?
    }

    private let memory = Mutex(Memory())

    /// The caller's place in the queue, once it has one.
    var ticket: Int? {
        get { memory.withLock { $0.ticket } }
        set { memory.withLock { $0.ticket = newValue } }
    }

    /// Whether the outcome is decided.
    var isFinished: Bool {
        memory.withLock { memory in
            switch memory.state {
            case .running, .suspended: false
            case .finished, .resumed: true
            }
        }
    }

    /// Suspends the caller; resumes it at once when the outcome is already decided.
    func suspend(_ continuation: UnsafeContinuation<Outcome, Never>) {
        let decided: Outcome? = memory.withLock { memory in
            guard case .finished(let outcome) = memory.state else {
                memory.state = .suspended(continuation)
                return nil
            }
            memory.state = .resumed
            return outcome
        }
        if let decided { continuation.resume(returning: decided) }
    }

    /// Decides the outcome; later outcomes are dropped. The caller is resumed outside the lock.
    func finish(_ outcome: Outcome) {
        let continuation: UnsafeContinuation<Outcome, Never>? = memory.withLock { memory in
            switch memory.state {
            case .running:
                memory.state = .finished(outcome)
                return nil
            case .suspended(let continuation):
                memory.state = .resumed
                return continuation
            case .finished, .resumed: return nil
            }
        }
        continuation?.resume(returning: outcome)
    }
}

/// A queue of at most `limit` callers, served in the order of arrival. A ticket is a place in the queue, so that
/// leaving early costs the same however long the queue is.
struct WaitQueue<Call: Sendable>: Sendable {
    /// A call and the start of its wait.
    struct Waiting: Sendable {
        let call: Call
        let waitStart: Moment
    }

    private let limit: Int
    private var places: [Waiting?] = []
    private var head = 0
    private var firstTicket = 0
    private(set) var count = 0
    private(set) var isClosed = false

    init(limit: Int) { self.limit = limit }

    /// Takes the last place and returns its ticket; throws `.queueFull` or `.closed`.
    mutating func join(_ call: Call, at now: Moment) throws(DatabaseError) -> Int {
        if isClosed { throw .closed }
        if count >= limit { throw .queueFull(limit) }
        places.append(Waiting(call: call, waitStart: now))
        count += 1
        return firstTicket + places.count - 1
    }

    /// Gives up a place and returns its call; nil when the call was already taken.
    mutating func leave(_ ticket: Int) -> Call? {
        let index = ticket - firstTicket
        guard index >= head, index < places.count, let waiting = places[index] else { return nil }
        places[index] = nil
        count -= 1
        dropEmptyHead()
        return waiting.call
    }

    /// Returns the next call; nil when none waits.
    mutating func take() -> Waiting? {
        dropEmptyHead()
        guard head < places.count, let waiting = places[head] else { return nil }
        places[head] = nil
        count -= 1
        dropEmptyHead()
        return waiting
    }

    mutating func take(atMost most: Int) -> [Waiting] {
        var taken: [Waiting] = []
        taken.reserveCapacity(min(most, count))
        while taken.count < most, let waiting = take() { taken.append(waiting) }
        return taken
    }

    /// Removes and returns the calls that have waited since `moment` or longer.
    mutating func takeWaiting(since moment: Moment) -> [Call] {
        var taken: [Call] = []
        while head < places.count, let waiting = places[head], waiting.waitStart <= moment {
            taken.append(waiting.call)
            _ = take()
        }
        return taken
    }

    /// Removes and returns the calls for which `isOver` holds, wherever they stand.
    mutating func take(where isOver: (Call) -> Bool) -> [Call] {
        let over = places.indices.dropFirst(head).filter { index in places[index].map { isOver($0.call) } ?? false }
        let tickets = over.map { firstTicket + $0 }
        return tickets.compactMap { leave($0) }
    }

    /// Closes the queue to new calls and returns those that waited.
    mutating func close() -> [Call] {
        isClosed = true
        return take(atMost: count).map(\.call)
    }

    /// Moves the head past abandoned places, and frees their memory once half of it is empty.
    private mutating func dropEmptyHead() {
        while head < places.count, places[head] == nil { head += 1 }
        guard head == places.count || (head >= 1_024 && head * 2 > places.count) else { return }
        firstTicket += head
        places.removeFirst(head)
        head = 0
    }
}

/// The pause before the next attempt to connect. It doubles from 50 ms to 2 s, half of it random; attempts never end.
struct Backoff {
    private static let first = Duration.milliseconds(50)
    private static let longest = Duration.seconds(2)
    private var step = Backoff.first

    /// Returns the next pause. The random half keeps many processes from reconnecting to a restarted server together.
    mutating func next() -> Duration {
        let pause = step / 2 + (step / 2) * Double.random(in: 0...1)
        step = min(step * 2, Self.longest)
        return pause
    }

    /// Starts again from the shortest pause, after a success.
    mutating func reset() { step = Self.first }
}
