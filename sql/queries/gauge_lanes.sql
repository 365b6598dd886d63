-- For metrics: receipts due now per app and lane, counted up to $1, and for how many seconds the first has been waiting;
-- an imported receipt has a place in a line and no time, so its lane has no such number.
SELECT a.bundle_id, l.lane::smallint AS lane, waiting.receipts, waiting.seconds
FROM ledger.app a
CROSS JOIN generate_series(0, 5) l(lane)
CROSS JOIN LATERAL (
    SELECT count(*) AS receipts,
           CASE WHEN l.lane <> 3 THEN COALESCE(EXTRACT(epoch FROM now() - min(s.due_at)), 0)::float8 END AS seconds
    FROM (
        SELECT s.due_at FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= now()
        ORDER BY s.due_at LIMIT $1::int) s) waiting
ORDER BY a.bundle_id, l.lane
