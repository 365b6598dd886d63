import CLibPQ

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A signal that wakes a thread asleep in `poll`: an eventfd on Linux, a pipe elsewhere.
final class WakeUp: Sendable {
    /// The descriptor that the sleeping thread polls for reading; -1, which `poll` ignores, when the system had none
    /// left.
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
        // An eventfd takes exactly eight bytes. A full pipe refuses them, but then the thread is already being woken.
        var one: UInt64 = 1
        _ = write(writeEnd, &one, 8)
    }

    /// Discards all signals so far; the woken thread calls it before it looks for work.
    func settle() {
        var bytes: [UInt8] = Array(repeating: 0, count: 512)
        while read(readEnd, &bytes, bytes.count) == bytes.count {}
    }
}
