import Synchronization

/// A latch that lets tasks wait until a number of threads have ended.
final class Latch: Sendable {
    private struct Memory {
        var remaining: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let memory: Mutex<Memory>

    /// Creates a latch that opens when `threads` threads have ended.
    init(threads: Int) { memory = Mutex(Memory(remaining: threads)) }

    /// Records that one of the threads has ended. The last one resumes every task that waits.
    func countDown() {
        let waiting: [CheckedContinuation<Void, Never>] = memory.withLock { memory in
            memory.remaining -= 1
            guard memory.remaining <= 0 else { return [] }
            defer { memory.waiting = [] }
            return memory.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Takes a `countDown` back, for a thread that was not to be waited for.
    func countUp() { memory.withLock { $0.remaining += 1 } }

    /// Waits until all threads have ended.
    func wait() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isOver = memory.withLock { memory in
                if memory.remaining > 0 { memory.waiting.append(continuation) }
                return memory.remaining <= 0
            }
            if isOver { continuation.resume() }
        }
    }
}
