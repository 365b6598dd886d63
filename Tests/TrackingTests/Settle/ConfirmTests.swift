import Postgres
import SQL
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Equal answers are settled cheaply, and only when nothing else is to be said")
struct ConfirmTests {
    /// What Apple said, as bytes: a word stands for a meaning.
    private func fingerprint(_ word: String, _ test: TestLedger, app: App? = nil) -> Fingerprint {
        let body = Array(word.utf8)
        return Fingerprint(
            of: body, lasting: [0..<body.count], app: app ?? test.app, environment: .production)
    }

    /// Settles an answer in full and keeps its fingerprint.
    private func tell(_ test: TestLedger, _ receipt: ReceiptID, _ answer: Answer, _ word: String = "same") async throws
    {
        try await tell(test, receipt, .verified(answer.evidence), word)
    }

    private func tell(
        _ test: TestLedger, _ receipt: ReceiptID, _ finding: Finding, _ word: String = "same"
    ) async throws {
        let claim = try await test.claim(receipt)
        let settlement = Settlement(
            claim: claim, finding: finding, body: Array(word.utf8), latestReceipt: nil,
            fingerprint: fingerprint(word, test))
        let settled = try await test.ledger.settlements.settleInFull([settlement])
        #expect(settled.failures.isEmpty)
    }

    /// Answers a fresh claim with an equal answer; whether that was enough.
    private func confirm(
        _ test: TestLedger, _ receipt: ReceiptID, asOf: Instant, before: (Claim) async throws -> Void = { _ in }
    ) async throws -> Bool {
        let claim = try await test.claim(receipt)
        try await before(claim)
        guard let equal = EqualAnswer(to: claim, fingerprint: fingerprint("same", test), asOf: asOf) else {
            return false
        }
        let confirmed = try await test.ledger.settlements.confirm([equal])
        return confirmed == [receipt]
    }

    @Test("An equal answer that ends a row of fruitless calls is settled in full: its receipt may take over again")
    func afterFruitlessCalls() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await tell(test, receipt, Answer(from: test.at(-20), asOf: test.at(-9)))
            for _ in 1...SettlementRun.fruitlessAttemptsMax { _ = try await test.claim(receipt) }
            #expect(try await confirm(test, receipt, asOf: test.at(-1)) == false)
        }
    }

    @Test("Clocks move, the lease is given back, nothing else changes")
    func clocks() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await tell(test, receipt, Answer(from: test.at(-20), asOf: test.at(-9)))
            let kept = "SELECT version, recorded_at, renewal, flags, expires_at FROM ledger.subscription"
            let spans = try await test.rows("SELECT p::text AS row FROM ledger.subscription_span p ORDER BY 1")
            let before = try await test.text(kept)
            #expect(try await confirm(test, receipt, asOf: test.at(-1)))
            #expect(try await test.text(kept) == before)
            #expect(try await test.rows("SELECT p::text AS row FROM ledger.subscription_span p ORDER BY 1") == spans)
            try await test.expectRows(
                """
                SELECT ledger.as_of(s, p) = $1::timestamptz AS moved,
                       ledger.renewal_as_of(s, p) = $1::timestamptz AS renewal_moved,
                       ledger.checked_at(s, p) > $2::timestamptz AS checked, p.leased_by, p.attempts, p.lane,
                       p.due_at = p.scheduled_for AND p.due_at = ledger.next_check_at(s, p) AND p.due_at > now() AS planned
                FROM ledger.subscription s JOIN ledger.poll_schedule p ON p.receipt_id = s.polled_by
                """, with: [.instant(test.at(-1)), .instant(test.now)], [[true, true, true, nil, 0, "expiring", true]])
            #expect(try await test.text("SELECT count(*) FROM ledger.event") == "2")
            #expect(try await confirm(test, receipt, asOf: test.at(-0.5)))
        }
    }

    @Test("The clock of an equal answer is that of its plan, also where the rules change while it waits to be stored")
    func oneClock() async throws {
        try await withLedger(connections: 1) { test in
            let receipt = try await test.upload("a")
            // In two seconds the refund is 60 days old: then the next check is earlier than in a week.
            let refundedAt = test.at(-60 + 2.0 / 86_400)
            let answer = Answer(from: test.at(-88.9), asOf: test.at(-9)).but {
                ($0.willRenew, $0.refunded) = (false, (0, refundedAt))
            }
            try await tell(test, receipt, answer)
            let claim = try await test.claim(receipt)
            let equal = try #require(
                EqualAnswer(to: claim, fingerprint: fingerprint("same", test), asOf: test.at(-1)))
            let settlements = test.ledger.settlements
            let confirming = try await test.database.transaction { transaction in
                let confirming = Task { try await settlements.confirm([equal]) }
                try transaction.script("SELECT pg_sleep(2.5)")
                return confirming
            }
            #expect(try await confirming.value == [receipt])
            #expect(
                try await test.text("SELECT due_at > now() + interval '6 days' FROM ledger.poll_schedule") == "true")
            #expect(try await test.violations([.nextCheck]) == [])
        }
    }

    @Test("An answer that says the same in other bytes is settled cheaply too, and recognised by its bytes next time")
    func otherBytes() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-20), asOf: test.at(-9))
            try await tell(test, receipt, answer)
            func settle(_ said: Answer, _ word: String) async throws -> Int {
                let settlement = Settlement(
                    claim: try await test.claim(receipt), finding: .verified(said.evidence), body: Array(word.utf8),
                    latestReceipt: nil, fingerprint: fingerprint(word, test))
                return try await test.ledger.settlements.settle([settlement]).confirmed.count
            }
            #expect(try await settle(answer.but { $0.asOf = test.at(-8) }, "in another order") == 1)
            let claim = try await test.claim(receipt)
            #expect(claim.fingerprint == fingerprint("in another order", test))
            try await test.ledger.claims.release([claim])
            var news = answer.but { $0.asOf = test.at(-7) }
            news.willRenew = false
            #expect(try await settle(news, "news") == 0)
        }
    }

    @Test("A check that was wanted meanwhile is planned")
    func wanted() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await tell(test, receipt, Answer(from: test.at(-20), asOf: test.at(-9)))
            let confirmed = try await confirm(test, receipt, asOf: test.at(-1)) { _ in
                try await test.run("UPDATE ledger.poll_schedule SET want_at = now()")
            }
            #expect(confirmed)
            try await test.expectRows(
                "SELECT due_at <= now() AS due, want_at, lane, leased_by FROM ledger.poll_schedule",
                [[true, nil, "expiring", nil]])
        }
    }

    @Test("The end of an observation is written when another meaning comes")
    func observations() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let first = Answer(from: test.at(-20), asOf: test.at(-9))
            try await tell(test, receipt, first)
            #expect(try await confirm(test, receipt, asOf: test.at(-4)))
            #expect(try await confirm(test, receipt, asOf: test.at(-3)))
            try await tell(test, receipt, first.but { ($0.asOf, $0.willRenew) = (test.at(-1), false) }, "other")
            try await test.expectRows(
                """
                SELECT first_as_of = $1::timestamptz AS first, last_as_of = $2::timestamptz AS last
                FROM ledger.observation ORDER BY observation_id
                """, with: [.instant(test.at(-9)), .instant(test.at(-3))], [[true, true], [false, false]])
            try await test.expectRows(
                "SELECT confirmed_as_of = $1::timestamptz AS last FROM ledger.poll_schedule",
                with: [.instant(test.at(-1))], [[true]])
        }
    }

    @Test("An end that passed since the last answer is settled in full")
    func boundary() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await tell(test, receipt, Answer(from: test.at(-30.5), asOf: test.at(-9)).but { $0.willRenew = false })
            #expect(try await confirm(test, receipt, asOf: test.at(-0.6)) == false)
            #expect(try await test.text("SELECT leased_by IS NOT NULL AS leased FROM ledger.poll_schedule") == "true")
        }
    }

    @Test("An upload, another receipt's answer or a lost lease asks for the full settlement")
    func disturbances() async throws {
        try await withLedger { test in
            let (receipt, other) = (try await test.upload("a"), try await test.upload("b"))
            let answer = Answer(from: test.at(-20), asOf: test.at(-9))
            try await tell(test, receipt, answer)
            let uploaded = try await confirm(test, receipt, asOf: test.at(-5)) { _ in
                try await test.upload("a", by: "bob")
            }
            #expect(!uploaded)
            try await test.run("UPDATE ledger.poll_schedule SET leased_by = NULL")
            try await tell(test, receipt, answer.but { $0.asOf = test.at(-5) })
            #expect(try await confirm(test, receipt, asOf: test.at(-4.5)))
            try await tell(test, other, answer.but { ($0.asOf, $0.willRenew) = (test.at(-4), false) }, "other")
            #expect(try await confirm(test, receipt, asOf: test.at(-3)) == false)
            try await test.run("UPDATE ledger.poll_schedule SET leased_by = NULL")
            try await tell(test, receipt, answer.but { $0.asOf = test.at(-3) })
            let lost = try await confirm(test, receipt, asOf: test.at(-2)) { _ in
                try await test.run("UPDATE ledger.poll_schedule SET lease_token = lease_token + 1")
            }
            #expect(!lost)
        }
    }

    @Test("An answer at an earlier clock is no confirmation")
    func earlier() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await tell(test, receipt, Answer(from: test.at(-20), asOf: test.at(-9)))
            #expect(try await confirm(test, receipt, asOf: test.at(-10)) == false)
        }
    }

    @Test("Other rules are another fingerprint")
    func rules() async throws {
        try await withLedger { test in
            try await test.run("UPDATE ledger.app SET leeway_ms = leeway_ms + 1")
            let app = try await test.appNow()
            #expect(fingerprint("same", test) != fingerprint("same", test, app: app))
            #expect(fingerprint("same", test) == fingerprint("same", test))
        }
    }

    @Test("An unchanged one-time purchase is confirmed too; a changed one is settled in full")
    func purchases() async throws {
        try await withLedger { test in
            let (receipt, other) = (try await test.upload("a"), try await test.upload("b"))
            try await tell(test, receipt, purchase("7", at: test.at(-9), asOf: test.at(-8)))
            let kept = "SELECT version, facts, recorded_at, revoked_at FROM ledger.purchase"
            let before = try await test.text(kept)
            #expect(try await confirm(test, receipt, asOf: test.at(-7)))
            #expect(try await test.text(kept) == before)
            try await test.expectRows(
                """
                SELECT ledger.as_of(b, s) = $1::timestamptz AS moved, ledger.checked_at(b, s) > b.recorded_at AS checked,
                       s.due_at > now() + interval '2 days' AS planned, s.leased_by
                FROM ledger.purchase b, ledger.poll_schedule s WHERE s.receipt_id = $2::bigint
                """, with: [.instant(test.at(-7)), .int8(receipt.number)], [[true, true, true, nil]])
            #expect(try await confirm(test, receipt, asOf: test.at(-7.5)) == false)
            try await test.run("UPDATE ledger.poll_schedule SET leased_by = NULL")
            let refunded = purchase("7", at: test.at(-9), asOf: test.at(-6), refundedAt: test.at(-6.5))
            try await tell(test, other, refunded, "other")
            #expect(try await confirm(test, receipt, asOf: test.at(-5)) == false)
        }
    }

    @Test("A receipt without purchases, or whose answer says less than is known, keeps no fingerprint")
    func whatIsNotConfirmed() async throws {
        try await withLedger { test in
            let (receipt, other) = (try await test.upload("a"), try await test.upload("b"))
            try await tell(test, receipt, purchase("7", at: test.at(-9), asOf: test.at(-1)))
            guard case .verified(var newer) = purchase("7", at: test.at(-9), asOf: test.at(-2)) else { return }
            newer.receiptCreatedAt = test.at(-3)
            let kept = """
                SELECT fingerprint IS NOT NULL AS kept FROM ledger.poll_schedule
                JOIN ledger.purchase ON polled_by = receipt_id
                """
            #expect(try await test.rows(kept) == ["true"])
            try await tell(test, other, .verified(newer))
            #expect(try await test.rows(kept) == ["false"])
        }
    }

    @Test("What the schedule keeps of a receipt's contents is what its facts say")
    func contents() async throws {
        try await withLedger { test in
            var random = Seeded(seed: 20_261_121)
            print(random)
            let policy = test.app.policy(for: .production)
            for number in 0..<40 {
                let id = OriginalTransactionID("s\(number)")
                let receipt = try await test.upload("r\(number)")
                let answer = Answer.random(id, around: test.now, using: &random)
                try await tell(test, receipt, answer)
                let claim = try await test.claim(receipt)
                let state = reconcile(nil, with: answer.evidence.slice(of: id), policy: policy).state
                #expect(
                    claim.polled
                        == PolledContents(subscriptions: [state], purchases: [], asOf: state.asOf, policy: policy),
                    "answer \(number): \(answer)")
            }
        }
    }

    @Test("A receipt whose purchases are too old to be asked about is settled in full")
    func oldPurchases() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await tell(test, receipt, purchase("7", at: test.at(-9), asOf: test.at(-8)))
            let (now, policy) = (test.now, test.app.policy(for: .production))
            let polled = try #require(try await test.claim(receipt).polled)
            #expect(polled.nextCheck(in: .production, now: now, seed: 1, policy: policy) != nil)
            #expect(polled.nextCheck(in: .production, now: now + .days(90), seed: 1, policy: policy) == nil)
        }
    }
}

extension Answer {
    /// One of many situations, seen some time before `now`.
    fileprivate static func random(
        _ id: OriginalTransactionID, around now: Instant, using random: inout Seeded
    ) -> Answer {
        func days(_ low: Double, _ high: Double) -> Instant {
            Instant(milliseconds: now.milliseconds + Int64(Double.random(in: low...high, using: &random) * 86_400_000))
        }
        var answer = Answer(from: days(-100, -40), periods: Int.random(in: 1...3, using: &random), asOf: days(-30, -1))
        answer.subscription = id
        answer.line = "w\(id)"
        answer.willRenew = [true, false, nil].randomElement(using: &random) ?? nil
        answer.inRetry = [true, nil].randomElement(using: &random) ?? nil
        answer.intent = answer.inRetry == nil ? ["1", "2", nil].randomElement(using: &random) ?? nil : nil
        if Bool.random(using: &random) { answer.graceUntil = days(-20, 20) }
        if Int.random(in: 0..<5, using: &random) == 0 { answer.refunded = (answer.periods - 1, answer.asOf) }
        return answer
    }
}
