import Hummingbird
package import NIOCore

/// Middleware that answers on Swift's own threads, because other connections of the event loop would wait meanwhile.
///
/// Only routes that need microseconds do without it.
struct OffEventLoop: RouterMiddleware {
    func handle(
        _ request: Request, context: CallerContext, next: (Request, CallerContext) async throws -> Response
    ) async throws -> Response {
        try await withTaskExecutorPreference(globalConcurrentExecutor) { try await next(request, context) }
    }
}

/// An executor that runs the task of a connection on the thread of its event loop, so that incoming data is processed
/// without waking another thread.
///
/// It suits short work between waits: while a task runs, nothing else of that loop does.
package final class EventLoopExecutor: TaskExecutor, @unchecked Sendable {
    private let loop: any EventLoop
    /// Whether the next job runs at once; only the thread of the loop uses it.
    private var runsNext = false

    /// Creates an executor for tasks that end before the loop does.
    package init(_ loop: any EventLoop) { self.loop = loop }

    /// Resumes a task and runs it until it waits again. The caller is the event loop, outside of any task.
    func runNow(_ resume: () -> Void) {
        runsNext = true
        resume()
        runsNext = false
    }

    /// Takes a job from the Swift runtime.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if loop.inEventLoop, runsNext {
            runsNext = false
            return job.runSynchronously(on: asUnownedTaskExecutor())
        }
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
