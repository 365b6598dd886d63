import ServiceLifecycle

/// Looks again and again until a signal asks to stop; the look that is under way is finished first.
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
