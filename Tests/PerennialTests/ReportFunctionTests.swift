import Postgres
import TestSupport
import Testing

/// The tests only read.
private let history = OncePerSuite(ReportFigureTests.withHistory)

@Suite("The reports' functions leave nothing out that counts", history) struct ReportFunctionTests {
    /// Every figure, known at one instant less known at another, from the whole history and as restatement has it.
    private static let differences = """
        WITH whole AS (
            SELECT 'active_subscriptions' AS figure, knowing.sign, t.bundle_id, t.environment,
                   'subscription' AS stream_kind, t.subscription_id AS stream_id, t.product_id, NULL AS currency,
                   (t.valid_from AT TIME ZONE 'UTC')::date AS first_day,
                   (t.access_until AT TIME ZONE 'UTC')::date AS end_day, NULL::bigint AS amount
            FROM (VALUES ($1::text::timestamptz, -1), ($2::text::timestamptz, 1)) AS knowing (at, sign)
            JOIN perennial.timeline t ON t.known_from <= knowing.at AND COALESCE(t.known_until > knowing.at, true)
            WHERE t.access_until IS NOT NULL
            UNION ALL
            SELECT 'mrr', knowing.sign, d.bundle_id, d.environment, 'subscription', d.stream_id, d.product_id,
                   d.currency, d.first_day, d.end_day, d.monthly_milliunits
            FROM (VALUES ($1::text::timestamptz, -1), ($2::text::timestamptz, 1)) AS knowing (at, sign)
            CROSS JOIN LATERAL perennial.paying_days_as_known(knowing.at, 'UTC') d
            UNION ALL
            SELECT 'revenue', knowing.sign, r.bundle_id, r.environment, r.charge_kind, r.stream_id, r.product_id,
                   r.currency, (r.occurred_at AT TIME ZONE 'UTC')::date, (r.occurred_at AT TIME ZONE 'UTC')::date + 1,
                   r.amount_milliunits
            FROM (VALUES ($1::text::timestamptz, -1), ($2::text::timestamptz, 1)) AS knowing (at, sign)
            CROSS JOIN LATERAL perennial.revenue_as_known(knowing.at) r
        ), reported AS (
            SELECT 1 AS side, * FROM whole
            UNION ALL
            SELECT -1, figure, sign, bundle_id, environment, stream_kind, stream_id, product_id, currency, first_day,
                   end_day, amount
            FROM perennial.restated_as_known($1::text::timestamptz, $2::text::timestamptz, 'UTC')
        ), edge AS (
            SELECT figure, bundle_id, environment, stream_kind, stream_id, product_id, currency, day,
                   sum(side * sign * edge) AS change, sum(side * sign * edge * amount) AS amount,
                   sum(sign * edge) FILTER (WHERE side = 1) AS whole
            FROM reported CROSS JOIN LATERAL (VALUES (first_day, 1), (end_day, -1)) AS at (day, edge)
            GROUP BY figure, bundle_id, environment, stream_kind, stream_id, product_id, currency, day
        )
        SELECT count(*) FILTER (WHERE change <> 0 OR amount <> 0) AS wrong,
               count(*) FILTER (WHERE whole <> 0) AS moved
        FROM edge
        """

    @Test func `a restatement of the subscriptions that changed is that of all`() async throws {
        try await history.use { database in
            let moments = [
                "2026-01-20 12:00Z", "2026-01-25 00:00:30Z", "2026-02-15 12:00Z", "2026-03-03 12:00Z", "infinity",
            ]
            var moved: Int64 = 0
            for (index, before) in moments.enumerated() {
                for after in moments[(index + 1)...] {
                    let rows = try await database.query(
                        Statement(name: "differences", sql: Self.differences), [.text(before), .text(after)])
                    let row = try #require(rows.first)
                    #expect(try row.int8("wrong") == 0, "known at \(before) and \(after)")
                    moved += try row.int8("moved")
                }
            }
            #expect(moved > 100, "the comparison would see nothing")
        }
    }

    @Test func `what goes on at the same price is one stretch`() async throws {
        try await history.use { database in
            let stretches = """
                SELECT p.original_transaction_id AS id, to_char(p.paying_from AT TIME ZONE 'UTC', 'DD Mon') AS day,
                       p.monthly_milliunits::text AS price
                FROM perennial.paying_as_known('infinity') p WHERE p.original_transaction_id IN ('A', 'E', 'H')
                ORDER BY p.original_transaction_id, p.paying_from
                """
            let reported: [[String?]] = try await database.query(Statement(name: "stretches", sql: stretches)).map {
                row in
                [try row.text("id"), try row.text("day"), try row.textIfPresent("price")]
            }
            // A's two charges are alike; E's second costs more; the price of H's offer is unknown, and April is held.
            let expected: [[String?]] = [
                ["A", "08 Jan", "10000"], ["E", "20 Jan", "7500"], ["E", "20 Feb", "10000"],
                ["H", "01 Feb", nil], ["H", "01 Mar", "12000"], ["H", "01 Apr", "12000"],
            ]
            #expect(reported == expected)
        }
    }

    /// Counts the anniversaries one by one, as the definition says.
    @Test func `anniversaries are counted as if one by one`() async throws {
        try await history.use { database in
            let counts = """
                SELECT count(*) FILTER (WHERE reported <> counted) AS wrong, count(*) FILTER (WHERE reported > 0) AS reported
                FROM (
                    SELECT perennial.anniversaries(began, before) AS reported,
                           (SELECT count(*) FROM generate_series(1, 36) month
                            WHERE (began AT TIME ZONE 'UTC') + month * interval '1 month' + interval '1 day'
                                < before AT TIME ZONE 'UTC') AS counted
                    FROM (
                        SELECT '2023-12-25Z'::timestamptz + a * interval '31 hours 7 minutes' AS began,
                               '2024-01-20Z'::timestamptz + b * interval '53 hours 31 minutes' AS before
                        FROM generate_series(0, 40) a CROSS JOIN generate_series(0, 100) b
                        UNION ALL
                        SELECT '2024-01-31 12:00Z', '2024-03-01 12:00Z'::timestamptz + edge * interval '1 microsecond'
                        FROM generate_series(-1, 1) edge) drawn) counted
                """
            let row = try #require(try await database.query(Statement(name: "anniversaries", sql: counts)).first)
            #expect(try row.int8("wrong") == 0)
            #expect(try row.int8("reported") > 1_000)
        }
    }

    @Test func `a recomputation in slices reads every subscription once`() async throws {
        try await history.use { database in
            let rows = try await database.query(
                Statement(
                    name: "slices",
                    sql: """
                        SELECT (SELECT string_agg(cardinality(s)::text, ',' ORDER BY cardinality(s) DESC)
                                FROM ledger.slices(4) s) AS sizes,
                               (SELECT array_agg(id ORDER BY id) FROM ledger.slices(4) s CROSS JOIN unnest(s) id)
                                   = (SELECT array_agg(subscription_id ORDER BY subscription_id)
                                      FROM ledger.subscription) AS is_whole
                        """))
            let row = try #require(rows.first)
            #expect(try row.bool("is_whole"))
            #expect(try row.text("sizes") == "4,4,2")
        }
    }
}
