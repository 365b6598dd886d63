import Ledger
import Synchronization

/// The feed's head as everybody who waits for events sees it: one question to the database serves them all.
final class FeedWatch: Sendable {
    /// How old what is told may be.
    static let ageMillisecondsMax = 40

    private struct Memory {
        var head: FeedHead?
        var asked: ContinuousClock.Instant?
    }

    private let read: @Sendable () async throws -> FeedHead
    private let memory = Mutex(Memory())

    /// A watch that asks `read` when what it knows is too old.
    init(read: @escaping @Sendable () async throws -> FeedHead) {
        self.read = read
    }

    /// The head. While one caller asks, the others are told what was known before.
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
