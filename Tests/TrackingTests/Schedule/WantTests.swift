import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("A check that is requested while the receipt is leased follows its settlement")
struct WantTests {
    private func want(_ test: TestLedger, at instant: Instant) async throws {
        _ = try await test.database.transaction {
            try $0.query(
                .test("UPDATE ledger.poll_schedule SET want_at = $1::timestamptz WHERE leased_by IS NOT NULL"),
                [.instant(instant)])
        }
    }

    private func schedule(_ test: TestLedger, _ instant: Instant) async throws -> [Cell] {
        try await test.row(
            """
            SELECT due_at = $1::timestamptz AS due, scheduled_for = due_at AS scheduled, want_at, leased_by, lane
            FROM ledger.poll_schedule
            """, [.instant(instant)])
    }

    @Test("The settlement asks as soon as it is wanted, urgently, and only once")
    func settled() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let claim = try await test.claim(receipt)
            try await want(test, at: test.at(0.1))
            try await test.settle(claim, .verified(Answer(from: test.at(-9), asOf: test.at(-1)).evidence))
            #expect(try await schedule(test, test.at(0.1)) == [true, true, nil, nil, "expiring"])
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-0.5)))
            #expect(try await schedule(test, test.at(0.1)) == [false, true, nil, nil, "sweep"])
        }
    }

    @Test("What is due sooner anyway stays as it is")
    func sooner() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let claim = try await test.claim(receipt)
            try await want(test, at: test.at(900))
            try await test.settle(claim, .verified(Answer(from: test.at(-9), asOf: test.at(-1)).evidence))
            #expect(try await schedule(test, test.at(900)) == [false, true, nil, nil, "sweep"])
        }
    }

    @Test("A receipt that would rest is asked once more")
    func retired() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let claim = try await test.claim(receipt)
            try await want(test, at: test.at(0))
            try await test.settle(claim, rejected(.otherBundle, status: 0))
            try await test.check(receipt, rejected(.otherBundle, status: 0))
            let third = try await test.claim(receipt)
            try await want(test, at: test.at(0))
            try await test.settle(third, rejected(.otherBundle, status: 0))
            #expect(try await schedule(test, test.at(0)) == [true, true, nil, nil, "expiring"])
            try await test.check(receipt, rejected(.otherBundle, status: 0))
            #expect(try await test.text("SELECT count(*) FROM ledger.poll_schedule") == "0")
        }
    }

    @Test(
        "What is handed back unasked, once or twice, is asked when it is wanted; a later claim serves an earlier wish")
    func released() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            let claim = try await test.claim(receipt)
            try await want(test, at: test.at(-2))
            try await test.ledger.claims.release([claim])
            #expect(try await schedule(test, test.at(-2)) == [true, true, nil, nil, "sweep"])
            try await test.ledger.claims.release([try await test.claim(receipt)])
            #expect(try await schedule(test, test.at(-2)) == [true, true, nil, nil, "sweep"])
            try await test.run(
                "UPDATE ledger.poll_schedule SET scheduled_for = now() + interval '1 day', want_at = now() - interval '1 s'"
            )
            let second = try await test.claim(receipt)
            #expect(try await test.text("SELECT want_at FROM ledger.poll_schedule") == "-")
            try await test.ledger.claims.release([second])
            #expect(try await test.text("SELECT count(*) FROM ledger.poll_schedule WHERE due_at <= now()") == "1")
        }
    }
}
