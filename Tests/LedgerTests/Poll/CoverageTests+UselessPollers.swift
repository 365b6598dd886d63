import Postgres
import Subscriptions
import Testing

@testable import Ledger

extension CoverageTests {
    /// Two receipts with one subscription: the newer one polls it, and the older one can take over.
    private func twoReceipts(_ test: TestLedger) async throws -> (poller: ReceiptID, successor: ReceiptID) {
        let (newer, older) = (try await test.upload("a"), try await test.upload("b"))
        try await test.check(older, answer(test, from: -9, made: -8, asOf: -4))
        try await test.check(newer, answer(test, from: -9, made: -2, asOf: -3))
        return (newer, older)
    }

    @Test("After five fruitless attempts another receipt takes over at once; without one the poller goes on")
    func fruitless() async throws {
        try await withLedger(in: coverageDatabase) { test in
            let (a, b) = try await twoReceipts(test)
            for attempt in 1...5 {
                #expect(try await polledBy(test) == a.description, "attempt \(attempt)")
                try await test.check(a, outage)
            }
            #expect(try await polledBy(test) == b.description)
            #expect(
                try await test.text("SELECT due_at <= now() AS due FROM ledger.poll_schedule WHERE receipt_id = \(b)")
                    == "true")
            try await test.expectSound()
            for _ in 1...6 { try await test.check(b, outage) }
            #expect(try await polledBy(test) == b.description)
            try await test.expectSound()
            try await test.check(a, answer(test, from: -9, made: -2, asOf: -1))
            #expect(try await polledBy(test) == a.description)
            try await test.expectSound()
        }
    }

    @Test("A receipt whose fifth call is still under way takes over: its lease may end without a call")
    func fruitlessWhileLeased() async throws {
        try await withLedger(in: coverageDatabase) { test in
            let (a, b) = try await twoReceipts(test)
            for _ in 1...4 { try await test.check(b, outage) }
            let claim = try await test.claim(b)
            for _ in 1...5 { try await test.check(a, outage) }
            #expect(try await polledBy(test) == b.description)
            try await test.ledger.claims.release([claim])
            #expect(try await polledBy(test) == b.description)
            try await test.expectSound()
        }
    }

    @Test("A receipt that is released after five attempts of workers that died hands over what it polls")
    func releasedAfterCrashes() async throws {
        try await withLedger(in: coverageDatabase) { test in
            let (a, b) = try await twoReceipts(test)
            try await test.run("UPDATE ledger.poll_schedule SET attempts = 5 WHERE receipt_id = \(a)")
            let claim = try await test.claim(a)
            #expect(try await polledBy(test) == a.description)
            try await test.ledger.claims.release([claim])
            #expect(try await polledBy(test) == b.description)
            try await test.expectSound()
        }
    }

    @Test("An upload leaves a receipt in quarantine, where it is asked about alone")
    func uploadedInQuarantine() async throws {
        try await withLedger(in: coverageDatabase) { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, answer(test, from: -9, made: -2, asOf: -3))
            try await test.run("UPDATE ledger.poll_schedule SET lane = 'quarantine', crashes = 3")
            _ = try await test.upload("a")
            #expect(try await test.text("SELECT lane FROM ledger.poll_schedule") == "quarantine")
        }
    }

    @Test("A receipt in quarantine hands over what it polls")
    func quarantined() async throws {
        try await withLedger(in: coverageDatabase) { test in
            let (a, b) = try await twoReceipts(test)
            try await test.run(
                """
                UPDATE ledger.poll_schedule SET crashes = 3, due_at = now(), scheduled_for = now()
                WHERE receipt_id = \(a)
                """)
            let lane = try #require(
                Lane(
                    rawValue: try await test.text("SELECT lane FROM ledger.poll_schedule WHERE receipt_id = \(a)")))
            let claims = try await test.ledger.claims.claim(
                for: test.worker, [Quota(app: test.app, lane: lane, receipts: 10)], leaseSeconds: 60)
            #expect(claims.isEmpty)
            #expect(try await polledBy(test) == b.description)
            #expect(
                try await test.text("SELECT due_at <= now() AS due FROM ledger.poll_schedule WHERE receipt_id = \(b)")
                    == "true")
            try await test.expectSound()
        }
    }
}
