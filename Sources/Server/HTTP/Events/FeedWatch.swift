import Ledger
import Synchronization

/// The feed's head, shared by all callers that wait for events: one query serves them all.
final class FeedWatch: Sendable {
    /// How long one query serves all callers, in milliseconds.
    static let ageMillisecondsMax = 40

    private struct Memory {
        var head: FeedHead?
        var asked: ContinuousClock.Instant?
    }

    private let read: @Sendable () async throws -> FeedHead
    private let memory = Mutex(Memory())

    /// Creates a watch that calls `read` when its last query is too old.
    init(read: @escaping @Sendable () async throws -> FeedHead) {
        self.read = read
    }

    /// Returns the head. For `ageMillisecondsMax` after one caller's query begins, the others get the last known head.
    func head() async throws -> FeedHead {
        let moment = ContinuousClock.now
        let known = memory.withLock { memory -> FeedHead? in
            if let head = memory.head, let asked = memory.asked,
                moment - asked < .milliseconds(Self.ageMillisecondsMax)
            {
                return head
            }
            memory.asked = moment
            return nil
        }
        if let known { return known }
        let head = try await read()
        memory.withLock { memory in
            if memory.head?.feed != head.feed || (memory.head?.position ?? 0) < head.position { memory.head = head }
        }
        return head
    }
}
