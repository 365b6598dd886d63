import NIOCore
import Synchronization

/// One open connection with its source address and the time since which it has been silent.
final class OpenConnection: Sendable {
    private static let answering: UInt64 = 0
    private static let ending = UInt64.max
    /// The offset that marks a time as that of a response. It is larger than any uptime in nanoseconds.
    private static let answeredBefore: UInt64 = 1 << 62

    /// Its source address.
    let source: SourceAddress
    private let channel: any Channel
    /// The uptime in nanoseconds since which it has been silent, plus `answeredBefore` if it ever had a response; or
    /// `answering`, or `ending`. Only the connection's own thread begins a request, which ends the silence.
    private let standing: Atomic<UInt64>

    /// Creates a connection that was just accepted.
    init(_ channel: any Channel) {
        self.channel = channel
        source = SourceAddress(channel.remoteAddress)
        standing = Atomic(NIODeadline.now().uptimeNanoseconds)
    }

    /// Begins a request. Returns false when the connection is being closed.
    func begin() -> Bool {
        let before = standing.load(ordering: .acquiring)
        guard before != Self.ending else { return false }
        return standing.compareExchange(
            expected: before, desired: Self.answering, ordering: .acquiringAndReleasing
        ).exchanged
    }

    /// Ends a request: it was answered.
    func end() {
        standing.store(Self.answeredBefore + NIODeadline.now().uptimeNanoseconds, ordering: .releasing)
    }

    /// The order among silent connections: first those that never had a response; within each group, first those silent
    /// longer. Nil while a request is being answered, and when the connection is being closed.
    var silence: UInt64? {
        let now = standing.load(ordering: .acquiring)
        return now == Self.answering || now == Self.ending ? nil : now
    }

    /// Marks the connection as closing, after which no request begins. Returns false when its silence ended meanwhile.
    func give(up silence: UInt64) -> Bool {
        standing.compareExchange(expected: silence, desired: Self.ending, ordering: .acquiringAndReleasing).exchanged
    }

    /// Closes the connection. Its own thread may handle that at once, so the caller must not hold a lock.
    func close() { channel.close(promise: nil) }
}
