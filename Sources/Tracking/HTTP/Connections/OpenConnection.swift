import NIOCore
import Synchronization

/// One open connection: where it comes from, and since when it is silent.
final class OpenConnection: Sendable {
    private static let answering: UInt64 = 0
    private static let ending = UInt64.max
    /// Larger than any uptime in nanoseconds.
    private static let answeredBefore: UInt64 = 1 << 62

    /// Where it comes from.
    let source: SourceAddress
    private let channel: any Channel
    /// Since when it is silent, or one of the constants above. Only the connection's own thread ends a silence by a request.
    private let standing: Atomic<UInt64>

    /// A connection that has just been accepted.
    init(_ channel: any Channel) {
        self.channel = channel
        source = SourceAddress(channel.remoteAddress)
        standing = Atomic(NIODeadline.now().uptimeNanoseconds)
    }

    /// A request begins; false when the connection is being ended.
    func begin() -> Bool {
        let before = standing.load(ordering: .acquiring)
        guard before != Self.ending else { return false }
        return standing.compareExchange(
            expected: before, desired: Self.answering, ordering: .acquiringAndReleasing
        ).exchanged
    }

    /// A request was answered.
    func end() {
        standing.store(Self.answeredBefore + NIODeadline.now().uptimeNanoseconds, ordering: .releasing)
    }

    /// Orders silent connections: those that never had an answer come first, and those that are silent longer. Nil while
    /// a request is being answered, and when the connection is being ended.
    var silence: UInt64? {
        let now = standing.load(ordering: .acquiring)
        return now == Self.answering || now == Self.ending ? nil : now
    }

    /// Whether the connection is to be closed now: not if its silence ended meanwhile. From then on no request begins.
    func give(up silence: UInt64) -> Bool {
        standing.compareExchange(expected: silence, desired: Self.ending, ordering: .acquiringAndReleasing).exchanged
    }

    /// Ends the connection. Its own thread sees that at once, so nothing may be locked meanwhile.
    func close() { channel.close(promise: nil) }
}
