-- For metrics: counts receipts due now per app and lane, up to $1, and returns how many seconds the first has waited.
-- An imported receipt has a place in a queue and no due time: among those the one stored first counts.
SELECT a.bundle_id, l.lane::text AS lane, waiting.receipts,
       COALESCE(EXTRACT(epoch FROM now() - first.due_at), 0)::float8 AS seconds
FROM ledger.app a
CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
CROSS JOIN LATERAL (
    SELECT count(*) AS receipts, min(s.due_at) AS due_at
    FROM (
        SELECT s.due_at FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= now()
        ORDER BY s.due_at LIMIT $1::int) s) waiting
CROSS JOIN LATERAL (
    SELECT CASE l.lane WHEN 'import' THEN (
        SELECT s.scheduled_for FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = 'import' AND s.due_at <= now()
        ORDER BY s.scheduled_for LIMIT 1) ELSE waiting.due_at END AS due_at) first
ORDER BY a.bundle_id, l.lane
