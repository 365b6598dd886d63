import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Every expected change is checked in time")
struct CoverageTests {
    /// Renews every 30 days from `from` days on.
    func answer(
        _ test: TestLedger, from: Double, periods: Int = 1, made: Double?, asOf: Double = 0
    ) -> Answer {
        Answer(from: test.at(from), periods: periods, asOf: test.at(asOf)).but {
            $0.createdAt = made.map(test.at)
        }
    }

    func polledBy(_ test: TestLedger) async throws -> String {
        try await test.text("SELECT polled_by FROM ledger.subscription")
    }

    /// The schedule row of a receipt is due when its subscription wants it.
    private func isDueInTime(_ test: TestLedger, _ receipt: ReceiptID) async throws -> String {
        try await test.text(
            """
            SELECT p.due_at <= s.next_check_at AS due FROM ledger.poll_schedule p
            JOIN ledger.subscription s ON s.polled_by = p.receipt_id WHERE p.receipt_id = \(receipt)
            """)
    }

    @Test(
        "An older or undated receipt that shows a return moves the poller's check forward, and back from rest",
        arguments: [(-70.0, nil), (-70, -100), (-400, nil), (-400, -500)] as [(Double, Double?)])
    func returned(lapsed: Double, made: Double?) async throws {
        try await withLedger { test in
            let (a, b) = (try await test.upload("a"), try await test.upload("b"))
            let lapse = answer(test, from: lapsed - 30, made: lapsed - 20, asOf: lapsed + 3).but {
                $0.willRenew = false
            }
            try await test.check(a, lapse)
            try await test.check(a, lapse.but { $0.asOf = test.at(-3) })
            let resting = try await test.rows("SELECT receipt_id FROM ledger.poll_schedule WHERE receipt_id = \(a)")
            #expect(resting.isEmpty == (lapsed == -400))
            try await test.check(b, answer(test, from: -2, made: made).but { $0.line = "n" })
            #expect(try await polledBy(test) == a.description)
            #expect(try await isDueInTime(test, a) == "true")
            #expect(try await test.rows("SELECT receipt_id FROM ledger.poll_schedule ORDER BY 1") == [a.description])
            try await test.expectSound()
        }
    }

    @Test("A poller that is leased meanwhile is wanted in time")
    func leased() async throws {
        try await withLedger { test in
            let (a, b) = (try await test.upload("a"), try await test.upload("b"))
            try await test.check(a, answer(test, from: -100, made: -90, asOf: -3).but { $0.willRenew = false })
            let claim = try await test.claim(a)
            try await test.check(b, answer(test, from: -29.5, made: nil).but { $0.line = "n" })
            #expect(
                try await test.text(
                    """
                    SELECT p.want_at = s.next_check_at AS wanted FROM ledger.poll_schedule p
                    JOIN ledger.subscription s ON s.polled_by = p.receipt_id
                    """) == "true")
            try await test.expectSound()
            try await test.settle(claim, outage)
            #expect(
                try await test.text(
                    "SELECT due_at <= next_check_at AS due FROM ledger.poll_schedule, ledger.subscription") == "true")
            try await test.expectSound()
        }
    }

    @Test("An undated receipt takes over from a poller that Apple refuses")
    func refused() async throws {
        try await withLedger { test in
            let (dated, undated) = (try await test.upload("dated"), try await test.upload("undated"))
            try await test.check(undated, answer(test, from: -9, made: nil, asOf: -4))
            try await test.check(dated, answer(test, from: -9, made: -2, asOf: -3))
            #expect(try await polledBy(test) == dated.description)
            try await test.check(dated, rejected())
            #expect(try await polledBy(test) == undated.description)
            try await test.expectSound()
        }
    }

    @Test("A receipt that Apple refuses for good leaves nothing behind that is asked about through it")
    func refusedForGood() async throws {
        try await withLedger { test in
            let only = try await test.upload("only")
            try await test.check(only, answer(test, from: -9, made: -8, asOf: -4))
            for _ in 0..<2 { try await test.check(only, rejected()) }
            #expect(try await polledBy(test) == only.description)
            try await test.run("UPDATE ledger.receipt SET rejected_since = now() - interval '73 hours'")
            try await test.check(only, rejected())
            try await test.expectRows("SELECT polled_by, next_check_at FROM ledger.subscription", [[nil, nil]])
            #expect(try await test.rows("SELECT receipt_id FROM ledger.poll_schedule") == [])
            try await test.expectSound()
        }
    }

    @Test("A verified answer that leaves out what the receipt polls lets another receipt take over, once")
    func omitted() async throws {
        try await withLedger { test in
            let (a, b) = (try await test.upload("a"), try await test.upload("b"))
            try await test.check(b, answer(test, from: -9, made: -8, asOf: -4))
            try await test.check(a, answer(test, from: -9, made: -2, asOf: -3))
            let other = answer(test, from: -9, made: -2, asOf: -2).but { $0.subscription = "2000" }
            func poller(_ id: String) async throws -> String {
                try await test.text(
                    "SELECT polled_by FROM ledger.subscription WHERE original_transaction_id = '\(id)'")
            }
            try await test.check(a, other)
            #expect(try await poller("1000") == b.description)
            #expect(try await poller("2000") == a.description)
            try await test.expectSound()
            try await test.check(b, other.but { $0.createdAt = test.at(-8) })
            #expect(try await poller("1000") == b.description, "Both leave it out: polling would go to and fro.")
            try await test.expectSound()
            try await test.check(b, answer(test, from: -9, made: -8, asOf: -1))
            try await test.check(a, answer(test, from: -9, made: -2, asOf: -0.5))
            #expect(try await poller("1000") == a.description)
            try await test.expectSound()
        }
    }

    @Test("What the poller left out while no other receipt could go on goes to the next one whose answer holds it")
    func omittedEarlier() async throws {
        try await withLedger { test in
            let (a, b) = (try await test.upload("a"), try await test.upload("b"))
            try await test.check(b, answer(test, from: -9, made: -8, asOf: -4))
            try await test.check(a, answer(test, from: -9, made: -2, asOf: -3))
            try await test.upload("b")
            try await test.check(b, rejected())
            try await test.check(a, answer(test, from: -9, made: -2, asOf: -2).but { $0.subscription = "2000" })
            let poller = "SELECT polled_by FROM ledger.subscription WHERE original_transaction_id = '1000'"
            #expect(try await test.text(poller) == a.description)
            try await test.expectSound()
            try await test.check(b, answer(test, from: -9, made: -8, asOf: -1))
            #expect(try await test.text(poller) == b.description)
            try await test.expectSound()
        }
    }

    @Test("The original receipt is asked again, within a minute, after the newest one left out what is polled")
    func original() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("original")
            try await test.check(receipt, answer(test, from: -9, made: -8, asOf: -4), latestReceipt: "latest")
            let claim = try await test.claim(receipt)
            #expect(claim.receipt == Array("latest".utf8) && claim.asksLatest)
            let nothing = Finding.verified(
                Evidence(environment: .production, bundleID: "com.example.app", asOf: test.at(-1)))
            let settled = try await test.settle(claim, nothing)
            #expect(try #require(settled.nextCheckAt) <= test.now + .seconds(120))
            let next = try await test.claim(receipt)
            #expect(next.receipt == Array("original".utf8) && !next.asksLatest)
            try await test.settle(next, nothing)
            #expect(try await polledBy(test) == receipt.description)
            try await test.expectSound()
        }
    }

    @Test("An equal answer that leaves out what the receipt came to poll moves no clock of it")
    func equalOmission() async throws {
        try await withLedger { test in
            let (a, b) = (try await test.upload("a"), try await test.upload("b"))
            try await test.check(b, answer(test, from: -9, made: -8, asOf: -4))
            try await test.check(a, answer(test, from: -9, made: -2, asOf: -3))
            let other = answer(test, from: -9, made: -8, asOf: -2).but { $0.subscription = "2000" }
            let fingerprint = Fingerprint(
                of: [1], lasting: [0..<1], app: test.app, environment: .production)
            let settlement = Settlement(
                claim: try await test.claim(b), finding: other.finding, body: [1], latestReceipt: nil,
                fingerprint: fingerprint)
            _ = try await test.ledger.settlements.settleInFull([settlement])
            try await test.check(a, rejected())
            let claim = try await test.claim(b)
            #expect(EqualAnswer(to: claim, fingerprint: fingerprint, asOf: test.at(-1)) == nil)
        }
    }

    @Test("Erasing a customer lets another's receipt take over, and leaves nothing to be asked without one")
    func erased() async throws {
        try await withLedger { test in
            let shared = try await test.upload("bob's", by: "bob")
            try await test.check(shared, answer(test, from: -9, made: -8, asOf: -4))
            let own = try await test.upload("ann's", by: "ann")
            try await test.check(own, answer(test, from: -9, made: -2, asOf: -3))
            #expect(try await polledBy(test) == own.description)
            let decision = try ManualDecision(by: "test", because: "asked for it")
            _ = try await test.ledger.customers.erase("ann", of: test.app.bundleID, deciding: decision)
            #expect(try await polledBy(test) == shared.description)
            try await test.expectSound()
            _ = try await test.ledger.customers.erase("bob", of: test.app.bundleID, deciding: decision)
            try await test.expectRows("SELECT polled_by, next_check_at FROM ledger.subscription", [[nil, nil]])
            try await test.expectSound()
        }
    }

    @Test("Swift and SQL agree on which receipts can be asked")
    func canPoll() async throws {
        try await withLedger { test in
            for (place, change) in [
                "verified_at = now(), asked_at = now()", "verified_at = NULL",
                "verified_at = now(), asked_at = now(), rejections = 1, rejected_since = now()",
                "verified_at = now(), asked_at = now(), erased_at = now()",
            ].enumerated() {
                for (lane, attempts, worker) in [
                    (Lane.expiring, 0, "NULL"), (.expiring, 4, "NULL"), (.expiring, 5, "NULL"), (.expiring, 5, "1"),
                    (.expiring, 6, "1"), (.quarantine, 0, "NULL"),
                ] {
                    let id = try await test.upload("\(place) \(lane) \(attempts) \(worker)")
                    try await test.run(
                        """
                        UPDATE ledger.receipt SET \(change) WHERE receipt_id = \(id);
                        UPDATE ledger.poll_schedule SET lane = '\(lane)', attempts = \(attempts), leased_by = \(worker)
                        WHERE receipt_id = \(id)
                        """)
                }
            }
            let sql = try await test.rows(
                """
                SELECT r.receipt_id FROM ledger.receipt r LEFT JOIN ledger.poll_schedule s USING (receipt_id)
                WHERE ledger.can_poll(r, s) ORDER BY 1
                """)
            let all = try await test.rows("SELECT receipt_id FROM ledger.receipt ORDER BY 1").map { Int64($0)! }
            let swift = try await test.database.transaction { transaction in
                let found = try FoundPollers(FoundPollers.Question(), in: transaction)
                let locked = try LockedPollers(all.map { ReceiptID($0) }, and: found, in: transaction)
                return all.filter { locked.canPoll(ReceiptID($0)) }.map(\.description)
            }
            #expect(sql == swift)
            #expect(swift.count == 3)
        }
    }
}

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
        try await withLedger { test in
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
        try await withLedger { test in
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
        try await withLedger { test in
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
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, answer(test, from: -9, made: -2, asOf: -3))
            try await test.run("UPDATE ledger.poll_schedule SET lane = 'quarantine', crashes = 3")
            _ = try await test.upload("a")
            #expect(try await test.text("SELECT lane FROM ledger.poll_schedule") == "quarantine")
        }
    }

    @Test("A receipt in quarantine hands over what it polls")
    func quarantined() async throws {
        try await withLedger { test in
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
