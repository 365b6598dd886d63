import Ledger
import Logging
import ServiceLifecycle

/// A signal that this process committed events, so that they get their positions in the feed at once. Without events
/// the listener sleeps.
///
/// Rings that the listener has not received yet count as one. There is one listener, the worker of the process.
struct FeedBell: Sendable {
    /// The stream on which the listener waits.
    let rings: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation

    init() {
        (rings, bell) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Signals that there are events without a position.
    func ring() { bell.yield() }
}

extension Tracker {
    /// Records the feed's new id when the database is another one than before, as after a restore, and logs it.
    func checkFeedPlace() async {
        guard let renewal = await attempt("see where the feed lives", { try await ledger.feed.checkPlace() }) ?? nil
        else {
            return
        }
        logger.warning(
            "the database was restored, so the feed has a new id; consumers read anew what they mirror",
            metadata: ["feed": "\(renewal.feed)", "former": "\(renewal.former)"])
    }

    /// Checks once a minute where the feed lives, until shutdown.
    package func maintainFeedPlace() async {
        while !isStopping() {
            await checkFeedPlace()
            await rest(seconds: 60)
        }
    }

    /// Gives the events of this process their positions until shutdown. `runMaintenance` finds events that were missed
    /// or that other processes left.
    func keepFeed() async {
        await cancelWhenGracefulShutdown {
            for await _ in feedBell.rings {
                let done = await attempt("place events in the feed") { try await ledger.feed.sequenceAll() }
                // Another process is placing events. It may have begun before our events were committed, so try again.
                if done == false { feedBell.ring() }
            }
        }
    }
}
