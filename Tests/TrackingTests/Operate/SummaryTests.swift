import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("The sums of each day follow the history while it changes") struct SummaryTests {
    /// Days on which a sum is not what the full history gives.
    private func wrongDays(_ test: TestLedger) async throws -> String {
        try await test.text(
            """
            SELECT count(*)::text FROM perennial.day_summary s
            FULL JOIN perennial.day_recomputed r USING (bundle_id, environment, day, currency)
            WHERE (s.active, s.trial, s.paying, s.monthly_milliunits, s.began, s.returned, s.churned, s.trials_started,
                   s.trials_converted, s.trials_lost)
                IS DISTINCT FROM (r.active, r.trial, r.paying, r.monthly_milliunits, r.began, r.returned, r.churned,
                                  r.trials_started, r.trials_converted, r.trials_lost)
              AND (r.day IS NOT NULL OR num_nonnulls(
                  NULLIF(s.active, 0), NULLIF(s.trial, 0), NULLIF(s.paying, 0), NULLIF(s.monthly_milliunits, 0),
                  NULLIF(s.began, 0), NULLIF(s.returned, 0), NULLIF(s.churned, 0), NULLIF(s.trials_started, 0),
                  NULLIF(s.trials_converted, 0), NULLIF(s.trials_lost, 0)) > 0)
            """)
    }

    private func summariseAll(_ test: TestLedger) async throws {
        try await test.ledger.feed.sequence()
        while try await test.ledger.operations.summarise()?.isBehind == true {}
    }

    @Test("Sums follow purchases, renewals, refunds and late news; the same step twice changes nothing")
    func follow() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-40), asOf: test.at(-39)))
            #expect(try await wrongDays(test) != "0", "the comparison would see nothing")
            try await summariseAll(test)
            #expect(try await wrongDays(test) == "0")
            #expect(try await test.text("SELECT sum(active)::text FROM ledger.summary_day WHERE active > 0") == "1")
            for asOf in [-20.0, -9, -1] {
                try await test.check(receipt, Answer(from: test.at(-40), asOf: test.at(asOf)))
                try await summariseAll(test)
                #expect(try await wrongDays(test) == "0", "as of \(asOf)")
            }
            let sums = try await test.text("SELECT string_agg(d::text, ';' ORDER BY d) FROM ledger.summary_day d")
            for _ in 0..<3 { try await summariseAll(test) }
            #expect(try await test.text("SELECT string_agg(d::text, ';' ORDER BY d) FROM ledger.summary_day d") == sums)
        }
    }

    @Test("A change without an event, such as a corrected price, is found by the round through all")
    func round() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            try await summariseAll(test)
            try await test.database.transaction {
                try $0.script(
                    """
                    SELECT ledger.record_price(app_id, 'monthly', '', tstzrange(NULL, NULL), 4990, 'EUR') FROM ledger.app
                    """)
            }
            #expect(try await wrongDays(test) != "0")
            try await summariseAll(test)
            #expect(try await wrongDays(test) == "0")
            let month = "SELECT sum(monthly_milliunits)::text FROM ledger.summary_day WHERE monthly_milliunits > 0"
            #expect(try await test.text(month) == "4990")
        }
    }

    @Test("An empty feed is not read ahead: the first events are not passed over")
    func empty() async throws {
        try await withLedger { test in
            for _ in 0..<3 { try await test.ledger.operations.summarise(isFirstRound: true) }
            #expect(try await test.text("SELECT position::text FROM ledger.summary_progress") == "0")
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            try await test.ledger.feed.sequence()
            // The round through all would find it as well, so only the feed is read here.
            try await test.database.transaction { try $0.script("UPDATE ledger.summary_progress SET round_at = 1000") }
            try await test.ledger.operations.summarise()
            #expect(try await wrongDays(test) == "0")
        }
    }

    @Test("A long stretch of the feed is read without rests, however few subscriptions its events are about")
    func behind() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            try await summariseAll(test)
            let end = try await test.text("SELECT position::text FROM ledger.summary_progress")
            try await test.database.transaction {
                try $0.script("UPDATE ledger.summary_progress SET position = position - 4500")
            }
            var steps: [Bool?] = []
            for _ in 0..<3 { steps.append(try await test.ledger.operations.summarise()?.isBehind) }
            #expect(steps == [true, true, false])
            #expect(try await test.text("SELECT position::text FROM ledger.summary_progress") == end)
        }
    }

    /// How many subscriptions reports read from the history.
    private func untold(_ test: TestLedger) async throws -> String {
        try await test.text("SELECT count(*)::text FROM perennial.unsummarised")
    }

    @Test("Reports read the history of what was settled, said or priced since it was summarised, until it is again")
    func rows() async throws {
        try await withLedger { test in
            for number in 0..<3 {
                let answer = Answer(from: test.at(-40), asOf: test.at(-30)).but {
                    $0.subscription = OriginalTransactionID("s\(number)")
                }
                try await test.check(try await test.upload("r\(number)"), answer)
            }
            #expect(try await untold(test) == "3")
            try await summariseAll(test)
            #expect(try await untold(test) == "0")
            let stored = "SELECT count(*)::text FROM perennial.summary_revenue"
            #expect(try await test.text(stored) == "3")

            let later = Answer(from: test.at(-40), asOf: test.at(-1)).but { ($0.subscription, $0.periods) = ("s1", 2) }
            try await test.check(try await test.upload("r1"), later)
            #expect(try await untold(test) == "1")
            let reported = "SELECT count(*)::text FROM perennial.revenue_as_known('infinity')"
            #expect(try await test.text(reported) == "4")
            try await summariseAll(test)
            #expect(try await untold(test) == "0")
            #expect(try await test.text(stored) == "4")

            // An equal answer moves clocks only.
            try await test.check(try await test.upload("r1"), later.but { $0.asOf = test.at(-0.5) })
            try await summariseAll(test)
            #expect(try await untold(test) == "0")

            let said = Upload(
                appID: test.app.id, customer: "ann", receipt: Array("r2".utf8), imported: false, priceMilliunits: 4_990,
                currency: "EUR")
            _ = try await test.ledger.intake.store([said])
            #expect(try await untold(test) == "1")
        }
    }

    @Test("Today so far counts what began and ended until now, not what is still to end")
    func today() async throws {
        try await withLedger { test in
            let day: Int64 = 86_400_000
            let midnight = test.now.milliseconds / day * day
            let earlier = Instant(milliseconds: (midnight + test.now.milliseconds) / 2)
            let later = Instant(milliseconds: (test.now.milliseconds + midnight + day) / 2)
            for (name, from, periods) in [
                ("ended", earlier + .days(-30), 1), ("began", earlier, 1), ("tries", earlier, 1),
                ("ends", later + .days(-30), 1), ("cameBack", earlier + .days(-60), 1),
            ] {
                let answer = Answer(from: from, periods: periods, asOf: test.now).but {
                    $0.subscription = OriginalTransactionID(name)
                    ($0.willRenew, $0.trial) = (false, name == "tries")
                }
                try await test.check(try await test.upload(name), answer)
            }
            let again = Answer(from: earlier, asOf: test.now).but {
                ($0.subscription, $0.line) = ("cameBack", "again")
            }
            try await test.check(try await test.upload("cameBack"), again)
            try await summariseAll(test)
            let days = try await test.ledger.admin.overview(app: nil, days: 3).days
            #expect(days.map { [$0.active, $0.trial, $0.paying] }.suffix(2) == [[2, 0, 2], [4, 1, 3]])
            let last = try #require(days.last)
            #expect([last.began, last.returned, last.churned, last.trialsStarted] == [1, 1, 1, 1])
            #expect(days.count == 4)
        }
    }

    @Test("An erased subscription leaves the sums")
    func erased() async throws {
        try await withLedger { test in
            try await test.check(try await test.upload("a"), Answer(from: test.at(-9), asOf: test.at(-1)))
            try await summariseAll(test)
            try await test.database.transaction { try $0.script("DELETE FROM ledger.subscription") }
            #expect(try await wrongDays(test) == "0")
            try await summariseAll(test)
            #expect(try await test.text("SELECT sum(abs(active))::text FROM ledger.summary_day") == "0")
        }
    }

    @Test("Events are read in order of the feed, across gaps, and one process reads at a time")
    func feed() async throws {
        try await withLedger(connections: 4) { test in
            for number in 0..<5 {
                let answer = Answer(from: test.at(-9), asOf: test.at(-1)).but {
                    $0.subscription = OriginalTransactionID("s\(number)")
                }
                try await test.check(try await test.upload("r\(number)"), answer)
            }
            try await test.ledger.feed.sequence()
            try await test.database.transaction {
                try $0.script("UPDATE ledger.event_feed SET position = position + 100000 WHERE position > 2")
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { _ = try await test.ledger.operations.summarise() } }
                try await group.waitForAll()
            }
            for _ in 0..<60 { try await test.ledger.operations.summarise() }
            #expect(try await wrongDays(test) == "0")
            #expect(try await test.text("SELECT events_behind::text FROM perennial.summary_now") == "0")
            #expect(try await test.text("SELECT is_complete::text FROM perennial.summary_now") == "true")
        }
    }

    @Test("Answers are added up by hour and old hours are dropped")
    func checks() async throws {
        try await withLedger { test in
            try await test.database.transaction {
                try $0.script("INSERT INTO ledger.check_hour VALUES (1, now() - interval '41 days', 1, 1, 1)")
            }
            var count = AnswerCount()
            (count.verified, count.rejected, count.failed) = (3, 2, 1)
            for _ in 0..<2 { try await test.ledger.settlements.addChecks([test.app.id: count]) }
            try await test.expectRows(
                "SELECT sum(verified), sum(rejected), sum(failed) FROM ledger.check_hour", [[6, 4, 2]])
            let overview = try await test.ledger.admin.overview(app: nil, days: 30)
            #expect(overview.hours.count == 48 && overview.hours.reduce(0) { $0 + $1.verified } == 6)
        }
    }
}
