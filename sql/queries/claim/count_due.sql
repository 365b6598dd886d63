-- Counts the receipts of each app and lane due by $2 (null: now), up to $1. Three rules lower the count:
-- * Of each app and lane it counts at most twice an app's even share of $1, or 16 if that is more.
-- * Of an app whose answers fail it counts at most three: enough to test whether Apple answers again.
-- * For the apps $3 and lanes $4 it leaves out receipts due before $5.
-- A paused app has no row until its pause ends: neither one that waits, nor one whose secret Apple refuses in production,
-- which ends by a trial alone (secret_trial). Each row, and the row without an app when nothing is due, has the time
-- this kept the database busy: the caller's own clock would include the wait for a connection.
WITH waiting AS MATERIALIZED (
    SELECT a.app_id, l.lane, low.due_at AS low, GREATEST(a.failures, g.failures) > 0 AS is_tried
    FROM ledger.app_budget a
    CROSS JOIN ledger.apple_breaker g
    CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
    LEFT JOIN unnest($3::int[], $4::text[]::ledger.lane[], $5::timestamptz[]) AS low(app_id, lane, due_at)
        ON low.app_id = a.app_id AND low.lane = l.lane
    CROSS JOIN LATERAL (
        SELECT FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= LEAST($2::timestamptz, now())
          AND s.due_at >= COALESCE(low.due_at, '-infinity')
        ORDER BY s.due_at LIMIT 1) first
    WHERE GREATEST(a.paused_until, g.paused_until) <= now()
      AND NOT EXISTS (
        SELECT FROM ledger.secret_trial t JOIN ledger.app p USING (app_id)
        WHERE t.app_id = a.app_id AND t.environment = 'Production' AND t.paused_since IS NOT NULL
          AND p.verifier = 'verify_receipt')
), share AS MATERIALIZED (
    SELECT LEAST($1::bigint, GREATEST(16, 2 * $1::bigint / GREATEST(1, count(DISTINCT app_id)))) AS receipts FROM waiting
)
SELECT found.app_id, found.lane::text AS lane, found.receipts,
       EXTRACT(epoch FROM clock_timestamp() - statement_timestamp())::float8 AS busy_seconds
FROM (VALUES (1)) one
LEFT JOIN (
    SELECT w.app_id, w.lane, due.receipts
    FROM waiting w
    CROSS JOIN share
    CROSS JOIN LATERAL (
        SELECT count(*) AS receipts FROM (
            SELECT FROM ledger.poll_schedule s
            WHERE s.app_id = w.app_id AND s.lane = w.lane AND s.due_at <= LEAST($2::timestamptz, now())
              AND s.due_at >= COALESCE(w.low, '-infinity')
            ORDER BY s.due_at
            LIMIT CASE WHEN w.is_tried THEN LEAST(share.receipts, 3) ELSE share.receipts END) s) due) found ON true
ORDER BY found.app_id, found.lane
