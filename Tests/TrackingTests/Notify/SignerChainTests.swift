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
            #expect(try await test.rows("SELECT header FROM ledger.signer_chain ORDER BY chain_id").count == 3)
            let headers = try await other.chainHeaders(numbered: Set(more.values))
            #expect(headers == Dictionary(uniqueKeysWithValues: more.map { ($1, $0) }))
            #expect(try await other.chainHeaders(numbered: [-1]).isEmpty)
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
