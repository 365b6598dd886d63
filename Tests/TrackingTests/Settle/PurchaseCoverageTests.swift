import Postgres
import Subscriptions
import Testing

@testable import Tracking

@Suite("One receipt looks for the refund of a one-time purchase")
struct PurchaseCoverageTests {
    private func bought(_ test: TestLedger, made: Double?, asOf: Double, at day: Double = -5) -> Finding {
        guard case .verified(var evidence) = purchase("77", at: test.at(day), asOf: test.at(asOf)) else {
            return outage
        }
        evidence.receiptCreatedAt = made.map(test.at)
        return .verified(evidence)
    }

    private func poller(_ test: TestLedger) async throws -> String {
        try await test.text("SELECT polled_by FROM ledger.purchase")
    }

    private func scheduled(_ test: TestLedger) async throws -> [String] {
        try await test.rows("SELECT receipt_id FROM ledger.poll_schedule ORDER BY 1")
    }

    @Test("The newest of several receipts looks for its refund, the others rest")
    func newest() async throws {
        try await withLedger { test in
            let (old, new) = (try await test.upload("old"), try await test.upload("new"))
            try await test.check(old, bought(test, made: -4, asOf: -3))
            try await test.check(new, bought(test, made: -2, asOf: -2))
            #expect(try await poller(test) == new.description)
            try await test.check(old, bought(test, made: -4, asOf: -1))
            #expect(try await poller(test) == new.description)
            #expect(try await scheduled(test) == [new.description])
            try await test.expectSound()
            try await test.check(new, rejected())
            #expect(try await poller(test) == old.description)
            #expect(try await scheduled(test) == [old.description, new.description])
            try await test.expectSound()
        }
    }

    @Test("A purchase that no answer holds any more was used up, and is asked about no longer")
    func usedUp() async throws {
        try await withLedger { test in
            let (old, new) = (try await test.upload("old"), try await test.upload("new"))
            try await test.check(old, bought(test, made: -4, asOf: -3))
            try await test.check(new, bought(test, made: -2, asOf: -2))
            let nothing = Finding.verified(
                Evidence(environment: .production, bundleID: "com.example.app", asOf: test.at(-1)))
            try await test.check(new, nothing)
            #expect(try await poller(test) == old.description)
            try await test.expectSound()
            try await test.check(old, nothing)
            try await test.expectRows("SELECT polled_by, next_check_at FROM ledger.purchase", [[nil, nil]])
            try await test.expectSound()
        }
    }

    @Test("After ninety days its refund is not looked for")
    func old() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, bought(test, made: -92, asOf: -1, at: -91))
            try await test.expectRows(
                "SELECT polled_by, next_check_at FROM ledger.purchase", [[.receipt(receipt), nil]])
            #expect(try await scheduled(test) == [])
            try await test.expectSound()
        }
    }
}
