import Subscriptions
import Testing

@testable import Tracking

@Suite("The header of signed texts is stored once, under a number")
struct SignerChainTests {
    @Test("A header keeps its number, also for other processes, and comes back")
    func once() async throws {
        try await withLedger { test in
            let first = try await test.ledger.chainNumbers(of: ["aaa", "bbb"])
            #expect(Set(first.keys) == ["aaa", "bbb"] && Set(first.values).count == 2)
            #expect(try await test.ledger.chainNumbers(of: ["bbb", "aaa"]) == first)
            let other = SubscriptionLedger(database: test.database)
            let more = try await other.chainNumbers(of: ["ccc", "aaa"])
            #expect(more["aaa"] == first["aaa"])
            let stored = first.merging(more) { one, _ in one }.sorted { $0.value < $1.value }
            #expect(
                try await test.rows("SELECT chain_id || header FROM ledger.signer_chain ORDER BY chain_id")
                    == stored.map { "\($0.value)\($0.key)" })
            #expect(try await other.chainNumbers(of: []).isEmpty)
        }
    }

    @Test("Many at once give one number to a header")
    func atOnce() async throws {
        try await withLedger { test in
            let numbers = try await withThrowingTaskGroup(of: Int32?.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        try await SubscriptionLedger(database: test.database).chainNumbers(of: ["aaa"])["aaa"]
                    }
                }
                return try await group.reduce(into: Set<Int32?>()) { $0.insert($1) }
            }
            #expect(numbers.count == 1 && !numbers.contains(nil))
        }
    }
}
