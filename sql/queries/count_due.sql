-- How many receipts of each app and lane are due by $2 (null: now), counted up to $1;
-- of an app whose answers fail only a few are counted, to try whether Apple is back. Of the apps $3 and lanes $4 nothing is
-- looked for that was due before $5.
SELECT a.app_id, l.lane::smallint AS lane, due.receipts
FROM ledger.app_budget a
CROSS JOIN ledger.apple_breaker g
CROSS JOIN generate_series(0, 5) l(lane)
LEFT JOIN unnest($3::int[], $4::smallint[], $5::timestamptz[]) AS low(app_id, lane, due_at)
    ON low.app_id = a.app_id AND low.lane = l.lane
CROSS JOIN LATERAL (
    SELECT count(*) AS receipts FROM (
        SELECT FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= LEAST($2::timestamptz, now())
          AND s.due_at >= COALESCE(low.due_at, '-infinity')
        LIMIT CASE WHEN GREATEST(a.failures, g.failures) > 0 THEN LEAST($1::int, 3) ELSE $1::int END) s) due
WHERE due.receipts > 0 AND GREATEST(a.open_until, g.open_until) <= now()
ORDER BY a.app_id, l.lane
