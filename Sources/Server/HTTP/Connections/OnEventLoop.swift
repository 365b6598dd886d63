import Hummingbird
import HummingbirdCore
import Logging
package import NIOCore

/// A connection served on the thread of its event loop, where its requests arrive and its responses leave.
struct OnEventLoop<Connection: ServerChildChannel>: ServerChildChannel {
    let connection: Connection

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Connection.Value> {
        connection.setup(channel: channel, logger: logger)
    }

    func handle(value: Connection.Value, logger: Logger) async {
        await withTaskExecutorPreference(EventLoopExecutor(value.channel.eventLoop)) {
            await connection.handle(value: value, logger: logger)
        }
    }
}

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

/// An executor that runs tasks on the thread of an event loop, so that incoming data is processed without waking
/// another thread.
///
/// It suits short work between waits: while a task runs, nothing else of that loop does.
package final class EventLoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    /// Creates an executor for the tasks that prefer it.
    /// - Parameter loop: The event loop; it must outlive the tasks.
    package init(_ loop: any EventLoop) {
        self.loop = loop
    }

    /// Takes a job from the Swift runtime.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
