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
        case suspended(CheckedContinuation<Outcome, Never>)
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
    func suspend(_ continuation: CheckedContinuation<Outcome, Never>) {
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
        let continuation: CheckedContinuation<Outcome, Never>? = memory.withLock { memory in
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
