-- Reserves calls for apps ($1 ids, $2 wanted): how many each app may make now; a rate of 0 is unlimited.
WITH want AS (
    SELECT * FROM unnest($1::int[], $2::int[]) AS w(app_id, wanted)
), current AS MATERIALIZED (
    SELECT b.app_id, b.rate, w.wanted, b.open_until > clock_timestamp() AS is_open,
           LEAST(b.burst, b.tokens + b.rate * GREATEST(0, EXTRACT(epoch FROM clock_timestamp() - b.refilled_at))) AS available
    FROM ledger.app_budget b JOIN want w USING (app_id)
    ORDER BY b.app_id
    FOR NO KEY UPDATE OF b
)
UPDATE ledger.app_budget b
SET tokens = CASE WHEN c.rate = 0 THEN b.tokens ELSE c.available - g.granted END,
    refilled_at = clock_timestamp()
FROM current c
CROSS JOIN LATERAL (
    SELECT CASE WHEN c.is_open THEN 0
                WHEN c.rate = 0 THEN c.wanted
                ELSE LEAST(c.wanted, floor(c.available))::int END AS granted) g
WHERE b.app_id = c.app_id
RETURNING b.app_id, g.granted
