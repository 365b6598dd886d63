#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Starts a dedicated thread: libpq blocks, and blocking calls never run on Swift's cooperative threads.
///
/// SIGPIPE is blocked on it, so that writing to a connection the server has closed is an error and does not end the
/// process.
/// - Returns: whether the system could create the thread.
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
        let status = pthread_create(&thread, &attributes, { ThreadBody.run($0) }, body.toOpaque())
    #else
        var thread: pthread_t?
        let status = pthread_create(&thread, &attributes, { ThreadBody.run($0) }, body.toOpaque())
    #endif
    if status != 0 { body.release() }
    return status == 0
}

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
