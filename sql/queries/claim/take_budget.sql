-- Reserves calls for apps ($1 ids, $2 wanted) and returns how many each may make now; a rate of 0 is unlimited. If
-- Apple asked for fewer calls of an app, its burst is smaller too; while a breaker is open there are none.
WITH want AS (
    SELECT * FROM unnest($1::int[], $2::int[]) AS w(app_id, wanted)
), current AS MATERIALIZED (
    SELECT b.app_id, b.tokens, pace.rate, w.wanted,
           GREATEST(b.paused_until, g.paused_until) > clock.at AS is_open, clock.at,
           LEAST(
               CASE b.rate WHEN 0 THEN GREATEST(1, pace.rate) ELSE GREATEST(1, b.burst * pace.rate / b.rate) END,
               b.tokens + pace.rate * GREATEST(0, EXTRACT(epoch FROM clock.at - b.refilled_at))) AS available
    FROM ledger.app_budget b JOIN want w USING (app_id)
    CROSS JOIN ledger.apple_breaker g
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS at) clock
    CROSS JOIN LATERAL (SELECT ledger.calls_a_second(b.rate, b.slowed_to, b.slowed_at, clock.at) AS rate) pace
    ORDER BY b.app_id
    FOR NO KEY UPDATE OF b
)
UPDATE ledger.app_budget b
SET tokens = CASE WHEN c.rate = 0 THEN b.tokens ELSE c.available - g.granted END,
    refilled_at = c.at
FROM current c
CROSS JOIN LATERAL (
    SELECT CASE WHEN c.is_open THEN 0
                WHEN c.rate = 0 THEN c.wanted
                ELSE LEAST(c.wanted, floor(c.available))::int END AS granted) g
WHERE b.app_id = c.app_id
RETURNING b.app_id, g.granted
