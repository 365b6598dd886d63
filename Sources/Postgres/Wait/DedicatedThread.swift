import CLibPQ
import Synchronization

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Starts a dedicated thread: libpq blocks, and blocking calls never run on Swift's cooperative threads. Returns
/// whether the system could create it. SIGPIPE is blocked on it: writing to a closed connection ends no process.
func startThread(_ run: @escaping @Sendable () -> Void) -> Bool {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    // Transactions run the caller's code here; by default macOS gives such a thread only half a megabyte of stack.
    pthread_attr_setstacksize(&attributes, 8 << 20)

    let body = Unmanaged.passRetained(ThreadBody(run))
    #if canImport(Glibc)
        var thread = pthread_t()
    #else
        var thread: pthread_t?
    #endif
    let status = pthread_create(&thread, &attributes, { ThreadBody.run($0) }, body.toOpaque())
    if status != 0 { body.release() }
    return status == 0
}

/// What a dedicated thread runs, as the system passes it.
private final class ThreadBody: Sendable {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    static func run(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let argument else { return nil }
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().body()
        return nil
    }
}

/// A signal that wakes a thread asleep in `poll`: an eventfd on Linux, a pipe elsewhere.
final class WakeUp: Sendable {
    /// The descriptor that the sleeping thread polls; -1, which `poll` ignores, when the system had none left.
    let readEnd: Int32
    private let writeEnd: Int32

    init() {
        #if os(Linux)
            readEnd = perennial_eventfd()
            writeEnd = readEnd
        #else
            var ends: [Int32] = [-1, -1]
            if pipe(&ends) == 0 {
                for end in ends {
                    _ = fcntl(end, F_SETFL, O_NONBLOCK)
                    _ = fcntl(end, F_SETFD, FD_CLOEXEC)
                }
            }
            readEnd = ends[0]
            writeEnd = ends[1]
        #endif
    }

    deinit {
        close(readEnd)
        if writeEnd != readEnd { close(writeEnd) }
    }

    /// Wakes the thread; when it is awake, its next `poll` returns at once.
    func ring() {
        // An eventfd takes exactly eight bytes. A full pipe refuses them, but it wakes the thread anyway.
        var one: UInt64 = 1
        _ = write(writeEnd, &one, 8)
    }

    /// Discards all signals so far; the woken thread calls it before it looks for work.
    func settle() {
        var bytes: [UInt8] = Array(repeating: 0, count: 512)
        while read(readEnd, &bytes, bytes.count) == bytes.count {}
    }
}

/// A latch that lets tasks wait until a number of threads have ended.
final class Latch: Sendable {
    private struct Memory {
        var remaining: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let memory: Mutex<Memory>

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
