import Subscriptions
import Testing

@testable import Ledger

@Suite("A receipt that Apple calls malformed is checked ever more seldom")
struct MalformedTests {
    private let malformed = Finding.indeterminate(CheckFailure(reason: "Malformed.", status: 21002, retryable: true))

    /// The longest of many waits after the given number of attempts, in seconds; each wait is drawn below a limit.
    private func longestWait(_ test: TestLedger, after attempts: Int, _ finding: Finding) async throws -> Double {
        var longest = 0.0
        for number in 0..<24 {
            let receipt = try await test.upload("\(attempts) \(number) \(finding)")
            try await test.run(
                "UPDATE ledger.poll_schedule SET attempts = \(attempts - 1) WHERE receipt_id = \(receipt)")
            let claim = try await test.claim(receipt)
            #expect(claim.attempts == attempts)
            try await test.settle(claim, finding)
            let wait = try await test.text(
                """
                SELECT extract(epoch FROM s.due_at - r.asked_at)::float8 AS wait
                FROM ledger.poll_schedule s JOIN ledger.receipt r USING (receipt_id) WHERE receipt_id = \(receipt)
                """)
            longest = max(longest, try #require(Double(wait)))
        }
        return longest
    }

    @Test("They are checked often for half an hour, then seldom; an outage alone makes no check seldom")
    func backOff() async throws {
        try await withLedger { test in
            let (last, first, away) = (
                try await longestWait(test, after: 12, malformed), try await longestWait(test, after: 13, malformed),
                try await longestWait(test, after: 40, outage)
            )
            #expect((150...300).contains(last))
            #expect((1800...3600).contains(first))
            #expect((150...300).contains(away))
            // Those that are probably no receipts take no turn from customers who wait.
            try await test.expectRows(
                "SELECT lane, count(*) FROM ledger.poll_schedule GROUP BY 1 ORDER BY 1", [["new", 48], ["sweep", 24]])
        }
    }
}
