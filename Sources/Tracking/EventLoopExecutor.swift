import NIOCore

/// Runs tasks on the thread of an event loop, so that what arrives there is worked on without waking another thread.
///
/// For short work between waits: as long as a task runs, nothing else of that loop does.
package final class EventLoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    /// An executor for the tasks that prefer it.
    /// - Parameter loop: The event loop; it has to outlive the tasks.
    package init(_ loop: any EventLoop) {
        self.loop = loop
    }

    /// Takes a job from the Swift runtime.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
