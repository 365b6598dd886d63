-- Counts the receipts of each app and lane due by $2 (null: now), up to $1. Three rules lower the count:
-- * Of each app and lane it counts at most twice an app's even share of $1, or 16 if that is more.
-- * Of an app whose answers fail it counts at most three: enough to test whether Apple answers again.
-- * For the apps $3 and lanes $4 it leaves out receipts due before $5.
-- A paused app has no row until its pause ends. Where Apple refuses the secret in one environment, or the calls of the Server API
-- are paused there and the app asks nothing else, only receipts of the other one count, as in claim.sql; a pause for the secret ends
-- by a trial alone (secret_trial). Each row, and the row without an
-- app when nothing is due, has the time this kept the database busy: the caller's own clock would include the wait for a
-- connection.
WITH held AS MATERIALIZED (
    SELECT t.app_id, bool_or(t.environment = 'Production') AS production, bool_or(t.environment = 'Sandbox') AS sandbox
    FROM (
        SELECT t.app_id, t.environment, 'verify_receipt' AS verifier FROM ledger.secret_trial t WHERE t.paused_since IS NOT NULL
        UNION ALL
        SELECT c.app_id, c.environment, 'server_api' FROM ledger.call_budget c
        WHERE c.endpoint IN ('statuses', 'history') AND c.paused_until > now()) t
    JOIN ledger.app p USING (app_id, verifier)
    GROUP BY t.app_id
), asked AS MATERIALIZED (
    SELECT a.app_id, GREATEST(a.failures, g.failures) > 0 AS is_tried,
           CASE WHEN h.production THEN 'Sandbox' WHEN h.sandbox THEN 'Production' ELSE 'both' END AS environment
    FROM ledger.app_budget a CROSS JOIN ledger.apple_breaker g LEFT JOIN held h ON h.app_id = a.app_id
    WHERE GREATEST(a.paused_until, g.paused_until) <= now() AND (h.production AND h.sandbox) IS NOT TRUE
), waiting AS MATERIALIZED (
    SELECT a.*, l.lane, low.due_at AS low
    FROM asked a
    CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
    LEFT JOIN unnest($3::int[], $4::text[]::ledger.lane[], $5::timestamptz[]) AS low(app_id, lane, due_at)
        ON low.app_id = a.app_id AND low.lane = l.lane
    CROSS JOIN LATERAL (
        (SELECT 1 FROM ledger.poll_schedule s
         WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= LEAST($2::timestamptz, now())
           AND s.due_at >= COALESCE(low.due_at, '-infinity')
           AND a.environment <> 'Sandbox' AND NOT (a.environment = 'Production' AND s.is_sandbox)
         ORDER BY s.due_at LIMIT 1)
        UNION ALL
        (SELECT 1 FROM ledger.poll_schedule s
         WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= LEAST($2::timestamptz, now())
           AND s.due_at >= COALESCE(low.due_at, '-infinity') AND a.environment = 'Sandbox' AND s.is_sandbox
         ORDER BY s.due_at LIMIT 1)) first
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
    CROSS JOIN LATERAL (SELECT CASE WHEN w.is_tried THEN LEAST(share.receipts, 3) ELSE share.receipts END AS receipts) most
    CROSS JOIN LATERAL (
        -- Each branch but the one that holds ends before it reads. The usual first one reads the index alone.
        SELECT count(*) AS receipts FROM (
            (SELECT 1 FROM ledger.poll_schedule s
             WHERE s.app_id = w.app_id AND s.lane = w.lane AND s.due_at <= LEAST($2::timestamptz, now())
               AND s.due_at >= COALESCE(w.low, '-infinity') AND w.environment = 'both'
             ORDER BY s.due_at LIMIT most.receipts)
            UNION ALL
            (SELECT 1 FROM ledger.poll_schedule s
             WHERE s.app_id = w.app_id AND s.lane = w.lane AND s.due_at <= LEAST($2::timestamptz, now())
               AND s.due_at >= COALESCE(w.low, '-infinity') AND w.environment = 'Production' AND NOT s.is_sandbox
             ORDER BY s.due_at LIMIT most.receipts)
            UNION ALL
            (SELECT 1 FROM ledger.poll_schedule s
             WHERE s.app_id = w.app_id AND s.lane = w.lane AND s.due_at <= LEAST($2::timestamptz, now())
               AND s.due_at >= COALESCE(w.low, '-infinity') AND w.environment = 'Sandbox' AND s.is_sandbox
             ORDER BY s.due_at LIMIT most.receipts)) s) due) found ON true
ORDER BY found.app_id, found.lane
