import ServiceLifecycle

/// A service that repeats a look until a signal asks to stop; the look under way is finished first.
struct Watching: Service {
    let everySeconds: Int
    let look: @Sendable () async -> Void

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await look()
                await pause(seconds: everySeconds)
            }
        }
    }
}
