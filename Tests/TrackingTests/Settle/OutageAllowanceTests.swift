import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("The outage allowance keeps access while Apple could not be asked")
struct OutageAllowanceTests {
    /// A period that ended `ended` days ago, last asked about `asked` days ago.
    private func answer(_ test: TestLedger, ended: Double, asked: Double) -> Answer {
        Answer(from: test.at(-ended - 30), asOf: test.at(-asked))
    }

    @Test("SQL and Swift agree at every instant of a table")
    func oneRule() async throws {
        try await withLedger { test in
            let receipts = [try await test.upload("a"), try await test.upload("b"), try await test.upload("c")]
            try await test.check(receipts[0], answer(test, ended: 5, asked: 6))
            try await test.check(
                receipts[1], answer(test, ended: 5, asked: 6).but { ($0.subscription, $0.willRenew) = ("2", false) })
            let grace = answer(test, ended: 20, asked: 15).but {
                ($0.subscription, $0.graceUntil, $0.inRetry, $0.intent) = ("3", test.at(-4), true, "2")
            }
            try await test.check(receipts[2], grace)
            let spans = try await test.database.query(
                .test(
                    """
                    SELECT p.ctid::text AS id, lower(p.valid) AS valid_from,
                           CASE WHEN NOT upper_inf(p.valid) THEN upper(p.valid) END AS valid_to, p.state::text AS state,
                           p.reason::text AS reason, p.entitled, p.product_id, p.flags, p.allowed_until
                    FROM ledger.subscription_span p
                    """))
            var held = 0
            for row in spans {
                let span = try StoredSpan(row: row)
                let edges = [span.from, span.to, span.allowedUntil].compactMap { $0 }
                let instants = edges.flatMap { edge in [-1, 0, 1].map { edge + Delay(milliseconds: $0) } } + [test.now]
                for instant in instants {
                    let said = try await test.text(
                        "SELECT ledger.is_in_outage_allowance(p.valid, p.allowed_until, $2::timestamptz) AS held FROM ledger.subscription_span p WHERE p.ctid::text = $1::text",
                        [.text(try row.text("id")), .instant(instant)])
                    #expect(said == String(span.isInOutageAllowance(at: instant)), "\(span) at \(instant)")
                    held += said == "true" ? 1 : 0
                }
            }
            #expect(held > 4, "nothing was held; this table would prove little")
        }
    }

    @Test("A held subscription is awaiting its renewal, entitled, until its allowance ends")
    func whileHeld() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), answer(test, ended: 5, asked: 6))
            try await test.expectRows(
                """
                SELECT state, reason, entitled, extract(day FROM entitled_until - expires_at) AS days
                FROM perennial.subscription_now
                """, [["awaiting_renewal", "renewal", true, 30]])
            #expect(
                try await test.entitled() == [true, "monthly", "awaiting_renewal", "renewal", "Production", "verified"])
            #expect(
                try await test.entitled(at: test.at(26)) == [
                    false, "monthly", "expired", "unknown", "Production", "verified",
                ])
            try await test.expectRows(
                "SELECT granted, state, until > now() AS later FROM perennial.entitlement_now",
                [[true, "awaiting_renewal", true]])
            #expect(try await endAllowances(test.ledger) == 0)
        }
    }

    @Test("The end of the allowance ends access once, with one event and one observation")
    func end() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), answer(test, ended: 40, asked: 41))
            #expect(try await test.entitled() == [false, "monthly", "expired", "unknown", "Production", "verified"])
            #expect(try await endAllowances(test.ledger) == 1)
            #expect(try await endAllowances(test.ledger) == 0)
            #expect(try await test.events().last == [3, 0, "subscription.expired"])
            try await test.expectRows(
                """
                SELECT occurred_at < now() AS past, as_of < now() AS said, detail->>'reason' AS reason FROM ledger.event
                WHERE kind = 'subscription.expired'
                """, [[true, true, "unknown"]])
            try await test.expectRows(
                "SELECT outcome, reason FROM ledger.observation WHERE outcome = 'none'",
                [["none", "The outage allowance of 1000 ran out."]])
            #expect(
                try await test.timeline() == [
                    [-70, "active", nil, false], [-40, "awaiting_renewal", "renewal", false],
                    [-39.92, "expired", "unknown", false],
                ])
            try await test.expectSound()
        }
    }

    /// An answer that names another subscription, of the same group unless said otherwise, and not subscription 1000.
    private func other(
        _ test: TestLedger, from: Double, asOf: Double = 0, group: SubscriptionGroupID = "group",
        refunded: Bool = false, shared: Bool = false
    ) -> Finding {
        var evidence = Answer(from: test.at(from), asOf: test.at(asOf)).but { $0.subscription = "2" }.evidence
        for index in evidence.transactions.indices {
            evidence.transactions[index].groupID = group
            if refunded { evidence.transactions[index].cancelledAt = test.at(asOf) }
            if shared { evidence.transactions[index].ownership = .familyShared }
        }
        return .verified(evidence)
    }

    private static let ends = """
        SELECT occurred_at < now() AS past, detail->>'reason' AS reason FROM ledger.event
        WHERE kind = 'subscription.expired'
        """

    @Test("An answer that shows a successor in the group instead ends the allowance at once")
    func successor() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, answer(test, ended: 5, asked: 6))
            let held: [(String, Finding)] = [
                ("another group", other(test, from: -4, group: "music")),
                ("charged before the last period began", other(test, from: -36)),
                ("refunded", other(test, from: -4, refunded: true)),
                ("a family share", other(test, from: -4, shared: true)),
                ("given before the end", other(test, from: -4, asOf: -5.5)),
                ("nothing at all", .verified(Evidence(environment: .production, asOf: test.now))),
            ]
            let state = "SELECT state, entitled FROM perennial.subscription_now WHERE original_transaction_id = '1000'"
            for (name, finding) in held {
                try await test.check(receipt, finding)
                #expect(try await test.rows(state) == ["awaiting_renewal true"], "\(name)")
                try await test.expectRows(Self.ends, [])
            }
            try await test.check(receipt, other(test, from: -35))
            try await test.expectRows(Self.ends, [[true, "unknown"]])
            try await test.expectRows(state, [["expired", false]])
            try await test.check(receipt, other(test, from: -35))
            try await test.expectRows(Self.ends, [[true, "unknown"]])
            try await test.expectRows(
                "SELECT reason FROM ledger.observation WHERE outcome = 'none'",
                [["The outage allowance of 1000 ran out."]])
            #expect(try await endAllowances(test.ledger) == 0)
            try await test.check(receipt, answer(test, ended: 5, asked: 0).but { $0.periods = 2 })
            try await test.expectRows(state, [["active", true]])
            try await test.expectSound()
        }
    }

    /// Lets minutes pass for what answers left out.
    private func age(_ test: TestLedger, minutes: Int) async throws {
        try await test.run(
            """
            UPDATE ledger.receipt_subscription SET omitted_at = omitted_at - interval '\(minutes) minutes';
            UPDATE ledger.subscription SET checked_at = checked_at - interval '\(minutes) minutes'
            """)
    }

    /// Statuses, and a history that was read on: it holds what changed, and the statuses name every subscription.
    private static let readOn = ServerRead(beginsAtStart: false, revision: "r2", goesOn: false)

    @Test(
        "Without a successor three answers over 72 hours end it, once every receipt was asked and no incident runs",
        arguments: [nil, readOn])
    func absence(_ server: ServerRead?) async throws {
        try await withLedger { test in
            let (first, second) = (try await test.upload("a"), try await test.upload("b"))
            try await test.check(first, answer(test, ended: 5, asked: 6))
            try await test.check(second, answer(test, ended: 5, asked: 6))
            let coins = purchase("9", at: test.at(-50), asOf: test.now)
            func leavesOut(_ receipt: ReceiptID, _ finding: Finding? = nil) async throws -> Bool {
                try await test.check(receipt, finding ?? coins, server: server)
                return try await test.rows(Self.ends).count == 1
            }
            #expect(try await !leavesOut(first))
            try await age(test, minutes: 80 * 60)
            #expect(try await !leavesOut(first), "two answers")
            #expect(try await !leavesOut(first), "another receipt was not asked")
            try await test.run(
                """
                INSERT INTO ledger.incident (app_id, kind, opened_at, recognised_at, asked, refused, last_reason)
                VALUES (\(test.app.id), 'refusals', now(), now(), 9, 9, 'no')
                """)
            #expect(try await !leavesOut(second), "an incident is running")
            try await test.run("UPDATE ledger.incident SET closed_at = now()")
            let empty = Finding.verified(Evidence(environment: .production, asOf: test.now))
            #expect(try await !leavesOut(second, empty), "an answer without purchases")
            #expect(try await leavesOut(second))
            try await test.expectSound()
        }
    }

    @Test("Statuses that show a successor end it at once")
    func successorInStatuses() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, answer(test, ended: 5, asked: 6))
            try await test.check(receipt, other(test, from: -35), server: Self.readOn)
            try await test.expectRows(Self.ends, [[true, "unknown"]])
            try await test.expectSound()
        }
    }

    @Test("An answer about another receipt that names it begins the count anew")
    func absenceAnew() async throws {
        try await withLedger { test in
            let (first, second) = (try await test.upload("a"), try await test.upload("b"))
            let coins = purchase("9", at: test.at(-50), asOf: test.now)
            try await test.check(first, answer(test, ended: 5, asked: 6))
            try await test.check(second, answer(test, ended: 5, asked: 6))
            try await test.check(second, coins)
            try await age(test, minutes: 80 * 60)
            try await test.check(first, answer(test, ended: 5, asked: 5.5))
            for receipt in [first, second] { try await test.check(receipt, coins) }
            try await test.expectRows(
                "SELECT absences FROM ledger.receipt_subscription ORDER BY receipt_id", [[1], [1]])
            try await age(test, minutes: 73 * 60)
            try await test.check(first, coins)
            try await test.expectRows(Self.ends, [[true, "unknown"]])
        }
    }

    @Test("Three answers within 72 hours, or before one that names it, end nothing")
    func absenceTooShort() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let held = answer(test, ended: 5, asked: 6)
            let coins = purchase("9", at: test.at(-50), asOf: test.now)
            try await test.check(receipt, held)
            for _ in 0..<4 { try await test.check(receipt, coins) }
            try await test.expectRows(Self.ends, [])
            try await age(test, minutes: 72 * 60 - 1)
            try await test.check(receipt, coins)
            try await test.expectRows(Self.ends, [])
            try await test.check(receipt, held)
            try await age(test, minutes: 2)
            try await test.expectRows("SELECT absences, omitted_at FROM ledger.receipt_subscription", [[0, nil]])
            try await test.check(receipt, coins)
            try await test.expectRows(Self.ends, [])
        }
    }

    @Test("Grace that ran out unseen ends the same way")
    func endOfGrace() async throws {
        try await withLedger { test in
            let grace = answer(test, ended: 50, asked: 45).but {
                ($0.graceUntil, $0.inRetry, $0.intent) = (test.at(-34), true, "2")
            }
            try await test.check(try await test.upload("a"), grace)
            #expect(try await endAllowances(test.ledger) == 1)
            #expect(try await test.events().last == [3, 0, "billing.grace_expired"])
            #expect(try await test.entitled() == [false, "monthly", "billing_retry", nil, "Production", "verified"])
            try await test.expectSound()
        }
    }

    @Test("A trial that could not be checked ends as a trial")
    func endOfTrial() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), answer(test, ended: 40, asked: 41).but { $0.trial = true })
            #expect(try await endAllowances(test.ledger) == 1)
            #expect(try await test.events().last == [3, 0, "trial.expired"])
        }
    }

    @Test("An answer that says expired adds no second event")
    func saidTwice() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, answer(test, ended: 40, asked: 41))
            try await endAllowances(test.ledger)
            try await test.check(
                receipt, answer(test, ended: 40, asked: 0).but { ($0.willRenew, $0.intent) = (false, "1") })
            try await test.expectRows(
                "SELECT version, ordinal, kind FROM ledger.event WHERE kind::text LIKE '%expired'",
                [[3, 0, "subscription.expired"]])
            #expect(try await test.entitled() == [false, "monthly", "expired", "voluntary", "Production", "verified"])
            #expect(try await endAllowances(test.ledger) == 0)
            try await test.expectSound()
        }
    }

    @Test("An answer that says renewed gives access back, and is late")
    func renewed() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, answer(test, ended: 40, asked: 41))
            try await endAllowances(test.ledger)
            try await test.check(receipt, answer(test, ended: 40, asked: 0).but { $0.periods = 3 })
            try await test.expectRows(
                "SELECT kind, detail->>'late' AS late FROM ledger.event WHERE version > 2 ORDER BY version, ordinal",
                [["subscription.expired", nil], ["subscription.renewed", "true"], ["subscription.renewed", nil]])
            #expect(try await test.entitled() == [true, "monthly", "active", nil, "Production", "verified"])
            try await test.expectSound()
        }
    }

    @Test("Renewed and over again: the second end is news")
    func renewedAndOver() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, answer(test, ended: 40, asked: 41))
            try await endAllowances(test.ledger)
            let over = answer(test, ended: 40, asked: 0).but { ($0.periods, $0.willRenew, $0.intent) = (2, false, "1") }
            try await test.check(receipt, over)
            #expect(
                try await test.rows("SELECT kind FROM ledger.event WHERE version > 2 ORDER BY version, ordinal").filter
                {
                    $0.hasPrefix("subscription")
                } == ["subscription.expired", "subscription.renewed", "subscription.expired"])
        }
    }

    @Test("Evidence older than the end does not bring the hold back")
    func olderEvidence() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, answer(test, ended: 40, asked: 41))
            try await endAllowances(test.ledger)
            let before = try await test.timeline()
            let ends = "SELECT count(*) FROM ledger.event WHERE kind::text LIKE '%expired'"
            try await test.check(receipt, answer(test, ended: 40, asked: 45))
            #expect(try await test.timeline() == before)
            #expect(try await endAllowances(test.ledger) == 0)
            #expect(try await test.text(ends) == "1")
            try await test.check(
                receipt, answer(test, ended: 40, asked: 0).but { ($0.willRenew, $0.intent) = (false, "1") })
            #expect(try await test.text(ends) == "1")
            try await test.expectSound()
        }
    }

    @Test("Ends and answers at the same moment never collide")
    func race() async throws {
        try await withLedger(connections: 6) { test in
            var claims: [Claim] = []
            for index in 0..<12 {
                let receipt = try await test.upload("r\(index)")
                let old = answer(test, ended: 40, asked: 41).but {
                    $0.subscription = OriginalTransactionID("s\(index)")
                }
                try await test.check(receipt, old)
                claims.append(try await test.claim(receipt))
            }
            let waiting = claims
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { for _ in 0..<20 { try await endAllowances(test.ledger, limit: 3) } }
                group.addTask { for _ in 0..<20 { try await endAllowances(test.ledger, limit: 3) } }
                for (index, claim) in waiting.enumerated() {
                    let news = answer(test, ended: 40, asked: 0).but {
                        ($0.subscription, $0.periods) = (OriginalTransactionID("s\(index)"), 3)
                    }
                    group.addTask { try await test.settle(claim, news.finding) }
                }
                try await group.waitForAll()
            }
            #expect(try await test.text("SELECT count(*) FROM perennial.subscription_now WHERE entitled") == "12")
            try await test.expectSound()
        }
    }
}
