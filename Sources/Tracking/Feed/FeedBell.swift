import ServiceLifecycle

/// Rings when this process committed events, so that they get their places in the feed at once; an idle process is left
/// alone.
///
/// Rings that nobody heard yet are one. There is one listener, the worker of the process.
struct FeedBell: Sendable {
    /// What the listener waits on.
    let rings: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation

    init() {
        (rings, bell) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Says that there is something to place.
    func ring() { bell.yield() }
}

extension Tracker {
    /// Says in the log that the feed has a new id, where the database is another one than before.
    func tendFeed() async {
        guard let renewal = await attempt("see where the feed lives", { try await ledger.tendFeed() }) ?? nil else {
            return
        }
        logger.warning(
            "the database was restored, so the feed has a new id; consumers read anew what they mirror",
            metadata: ["feed": "\(renewal.feed)", "former": "\(renewal.former)"])
    }

    /// Places what this process commits until shutdown; what others left, or what was missed, is found by `keepHouse`.
    func keepFeed() async {
        await cancelWhenGracefulShutdown {
            for await _ in feedBell.rings {
                let done = await attempt("place events in the feed") { try await ledger.placeEvents() }
                // Another sequencer was at work all the time: it may have begun before our events were there.
                if done == false { feedBell.ring() }
            }
        }
    }
}
