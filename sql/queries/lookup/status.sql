-- Returns the state of the schedule, per app and lane. Each count stops at $1, or earlier when there are many apps
-- (at_most), so that the cost does not depend on the size. Receipts in flight lie shortly ahead, where leases end.
-- lag_seconds is the wait of the first due receipt of a lane; for imported ones, which are not in order of time, that
-- of the one stored first.
WITH bound AS MATERIALIZED (
    SELECT GREATEST(100, LEAST($1::bigint, 10 * $1::bigint / GREATEST(1, count(*)))) AS rows FROM ledger.app
)
SELECT a.bundle_id, l.lane::text AS lane, stock.receipts, waiting.due, waiting.overdue, ahead.in_flight,
       LEAST(waiting.next_due_at, stored.first_at, ahead.next_due_at) AS next_due_at,
       EXTRACT(epoch FROM now() - LEAST(waiting.next_due_at, stored.first_at))::float8 AS lag_seconds, bound.rows AS at_most
FROM ledger.app a
CROSS JOIN bound
CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
CROSS JOIN LATERAL (
    SELECT count(*) AS receipts FROM (
        SELECT FROM ledger.poll_schedule s WHERE s.app_id = a.app_id AND s.lane = l.lane
        ORDER BY s.due_at LIMIT bound.rows) s) stock
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE s.leased_by IS NULL) AS due,
           count(*) FILTER (WHERE GREATEST(s.due_at, s.scheduled_for) <= now() - interval '1 minute') AS overdue,
           min(GREATEST(s.due_at, s.scheduled_for)) FILTER (WHERE s.leased_by IS NULL) AS next_due_at
    FROM (
        SELECT s.due_at, s.scheduled_for, s.leased_by FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= now()
        ORDER BY s.due_at LIMIT bound.rows) s) waiting
CROSS JOIN LATERAL (
    SELECT CASE l.lane WHEN 'import' THEN (
        SELECT s.scheduled_for FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = 'import' AND s.due_at <= now() AND s.leased_by IS NULL
        ORDER BY s.scheduled_for LIMIT 1) END AS first_at) stored
CROSS JOIN LATERAL (
    SELECT count(s.leased_by) AS in_flight,
           min(GREATEST(s.due_at, s.scheduled_for)) FILTER (WHERE s.leased_by IS NULL) AS next_due_at
    FROM (
        SELECT s.due_at, s.scheduled_for, s.leased_by FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at > now()
        ORDER BY s.due_at LIMIT bound.rows) s) ahead
WHERE stock.receipts > 0
ORDER BY a.bundle_id, l.lane
