import DequeModule
import Synchronization

/// A limit on the calls to Apple at a time. Claimed receipts wait here, in order, because the HTTP client gives up a call
/// that waits long for a connection, and the time of a call begins with it.
final class CallGate: Sendable {
    private struct State {
        var free: Int
        var waiting: Deque<CheckedContinuation<Void, Never>> = []
    }

    private let state: Mutex<State>

    init(callsMax: Int) {
        state = Mutex(State(free: max(1, callsMax)))
    }

    /// Returns when a call may begin. The caller then calls `leave`.
    func enter() async {
        await withCheckedContinuation { turn in
            let isFree = state.withLock { state in
                guard state.free > 0 else {
                    state.waiting.append(turn)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { turn.resume() }
        }
    }

    /// Lets the next caller in.
    func leave() {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume()
    }
}
