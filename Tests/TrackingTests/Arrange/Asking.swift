import Postgres
import Subscriptions
import Testing

@testable import Tracking

extension TestLedger {
    /// The rows of a query, each as one text: its columns joined by spaces, `-` for NULL.
    func rows(_ sql: String, _ parameters: [Parameter] = []) async throws -> [String] {
        let line =
            "SELECT array_to_string(ARRAY(SELECT value FROM json_each_text(row_to_json(q))), ' ', '-') AS line FROM ("
        return try await database.query(.test(line + sql + ") q"), parameters).map { try $0.text("line") }
    }

    /// The single text a query answers.
    func text(_ sql: String, _ parameters: [Parameter] = []) async throws -> String {
        let rows = try await rows(sql, parameters)
        try #require(rows.count == 1, "\(sql) answered \(rows.count) rows")
        return rows[0]
    }

    /// Runs statements as they stand.
    func run(_ sql: String) async throws {
        try await database.transaction { try $0.script(sql) }
    }

    /// Everything in every table of the ledger but the workers' heartbeats and the log of changes that lookups read.
    func everything() async throws -> [String: [String]] {
        let tables = try await rows(
            "SELECT c.relname AS name FROM pg_class c WHERE c.relnamespace = 'ledger'::regnamespace AND c.relkind = 'r' "
                + "AND c.relname <> 'worker' ORDER BY 1")
        var contents: [String: [String]] = [:]
        for table in tables {
            contents[table] = try await rows("SELECT t::text AS t FROM ledger.\(table) t ORDER BY 1")
        }
        return contents
    }

    /// The events of a subscription in order: version, ordinal, kind.
    func events(of subscription: String = "1000") async throws -> [[Cell]] {
        try await database.cells(
            """
            SELECT e.version, e.ordinal, e.kind FROM ledger.event e
            JOIN ledger.subscription s USING (subscription_id)
            WHERE s.original_transaction_id = $1::text ORDER BY e.version, e.ordinal
            """, [.text(subscription)])
    }

    /// The owner of a subscription now; `-` when it has none.
    func owner(of subscription: String = "1000") async throws -> String {
        try await text(
            "SELECT customer FROM perennial.subscription_now WHERE original_transaction_id = $1::text",
            [.text(subscription)])
    }

    /// One right at an instant, as known at another: granted, product, state, reason, environment, basis.
    func entitled(
        _ right: String = "monthly", _ customer: String = "ann", at valid: Instant? = nil, knownAt known: Instant? = nil
    ) async throws -> [Cell] {
        try await row(
            """
            SELECT e.granted, e.product_id, e.state, e.reason, e.environment, e.basis FROM perennial.entitled_at(
                'com.example.app', $1::text, $2::text, COALESCE($3::timestamptz, now()), COALESCE($4::timestamptz, now())) e
            """, [.text(customer), .text(right), .instant(valid), .instant(known)])
    }

    /// The open timeline of a subscription, one row a span: days from `now`, state, reason, whether it is held.
    func timeline(of subscription: String = "1000") async throws -> [[Cell]] {
        try await database.cells(
            """
            SELECT round((extract(epoch FROM lower(p.valid) - $2::timestamptz) / 86400)::numeric, 2)::float8 AS day, p.state,
                   p.reason, p.allowed_until IS NOT NULL AS held
            FROM ledger.subscription_span p JOIN ledger.subscription s USING (subscription_id)
            WHERE s.original_transaction_id = $1::text AND upper_inf(p.known) ORDER BY lower(p.valid)
            """, [.text(subscription), .instant(now)])
    }

    /// What must be true of every ledger whatever happened: dense versions, unique places, timelines without gaps.
    func expectSound() async throws {
        let gaps = try await rows(
            """
            SELECT stream, versions, highest FROM (
                SELECT COALESCE('s' || subscription_id, 'p' || purchase_id) AS stream, count(DISTINCT version) AS versions,
                       max(version) AS highest, min(version) AS lowest
                FROM ledger.event GROUP BY 1) v
            WHERE lowest <> 1 OR versions > highest
            """)
        #expect(gaps == [], "events do not begin at version 1")
        let torn = try await rows(
            """
            SELECT subscription_id, valid FROM (
                SELECT subscription_id, valid,
                       lead(lower(valid)) OVER (PARTITION BY subscription_id ORDER BY lower(valid)) AS next
                FROM ledger.subscription_span WHERE upper_inf(known)) t
            WHERE upper(valid) IS DISTINCT FROM next
            """)
        #expect(torn == [], "an open timeline has a gap or does not reach to infinity")
        let timelines = try await rows(
            """
            SELECT s.subscription_id FROM ledger.subscription s WHERE s.version > 0 AND NOT EXISTS (
                SELECT FROM ledger.subscription_span p WHERE p.subscription_id = s.subscription_id AND upper_inf(p.known))
            """)
        #expect(timelines == [], "a subscription has no open timeline")
        try await expectCovered()
    }
}

extension TestLedger {
    /// What is expected is asked about in time, by a receipt that can vouch for it.
    func expectCovered() async throws {
        for (thing, link) in [("subscription", "receipt_subscription"), ("purchase", "receipt_purchase")] {
            let uncovered = try await rows(
                """
                SELECT t.original_transaction_id, t.polled_by, next.check_at, s.due_at, s.want_at
                FROM ledger.\(thing) t
                LEFT JOIN ledger.receipt r ON r.receipt_id = t.polled_by
                LEFT JOIN ledger.poll_schedule s ON s.receipt_id = t.polled_by
                CROSS JOIN LATERAL (SELECT ledger.next_check_at(t, s) AS check_at) next
                WHERE next.check_at IS NOT NULL AND NOT COALESCE(
                    r.verified_at IS NOT NULL AND r.erased_at IS NULL
                    AND EXISTS (SELECT FROM ledger.\(link) l
                                WHERE l.receipt_id = r.receipt_id AND l.\(thing)_id = t.\(thing)_id)
                    AND (s.due_at <= next.check_at OR s.backs_off OR s.lane = 'quarantine'
                         OR s.leased_by IS NOT NULL AND LEAST(s.want_at, s.scheduled_for) <= next.check_at), false)
                """)
            #expect(uncovered == [], "a \(thing) is not asked about in time")
        }
        let omitted = try await rows(
            """
            SELECT t.original_transaction_id FROM ledger.subscription t
            JOIN ledger.receipt_subscription o ON o.subscription_id = t.subscription_id AND o.receipt_id = t.polled_by
            LEFT JOIN ledger.poll_schedule p ON p.receipt_id = t.polled_by
            WHERE o.omitted_at IS NOT NULL AND p.leased_by IS NULL AND EXISTS (
                SELECT FROM ledger.receipt_subscription l JOIN ledger.receipt r USING (receipt_id)
                LEFT JOIN ledger.poll_schedule s USING (receipt_id)
                WHERE l.subscription_id = t.subscription_id AND l.omitted_at IS NULL AND ledger.can_poll(r, s))
            """)
        #expect(omitted == [], "a subscription is polled by a receipt that leaves it out though another one holds it")
        let forgotten = try await rows(
            """
            SELECT t.original_transaction_id FROM ledger.subscription t
            WHERE t.version > 0 AND t.polled_by IS NULL AND EXISTS (
                SELECT FROM ledger.receipt_subscription l JOIN ledger.receipt r USING (receipt_id)
                LEFT JOIN ledger.poll_schedule s USING (receipt_id)
                WHERE l.subscription_id = t.subscription_id AND ledger.can_poll(r, s))
            """)
        #expect(forgotten == [], "a subscription has no poller though a receipt can vouch for it")
    }
}

extension Statement {
    /// A statement of a test, named by its own text.
    static func test(_ sql: String) -> Statement {
        Statement(name: "test_\(sql.hashValue)", sql: sql)
    }
}
