-- How many receipts of each app and lane are due by $2 (null: now), counted up to $1, and how often its answers failed;
-- of an app whose answers fail only a few are counted, to try whether Apple is back.
SELECT a.app_id, l.lane::smallint AS lane, due.receipts, a.failures
FROM ledger.app_budget a
CROSS JOIN generate_series(0, 5) l(lane)
CROSS JOIN LATERAL (
    SELECT count(*) AS receipts FROM (
        SELECT FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= LEAST($2::timestamptz, now())
        LIMIT CASE WHEN a.failures > 0 THEN LEAST($1::int, 3) ELSE $1::int END) s) due
WHERE due.receipts > 0 AND a.open_until <= now()
ORDER BY a.app_id, l.lane
