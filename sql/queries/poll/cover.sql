-- Polling: makes receipts ($1) due no later than $2, in lanes $3, and reschedules the unscheduled ones; their rows are
-- locked. For a leased receipt this takes effect when its lease is released. A receipt that backs off or crashes
-- workers keeps its schedule, unless it takes over ($4): then it becomes due anyway, and its next answer is read in
-- full.
WITH turn AS MATERIALIZED (
    SELECT n.receipt_id, n.due_at, n.lane, n.receipt_id = ANY($4::bigint[]) AS takes_over
    FROM unnest($1::bigint[], $2::timestamptz[], $3::text[]::ledger.lane[]) AS n(receipt_id, due_at, lane)
), change AS MATERIALIZED (
    SELECT t.*,
           s.leased_by IS NULL AND s.due_at > t.due_at AND (t.takes_over OR NOT (s.backs_off OR s.lane = 'quarantine')) AS moves,
           s.leased_by IS NOT NULL AND s.scheduled_for > t.due_at AS waits
    FROM turn t JOIN ledger.poll_schedule s USING (receipt_id)
), changed AS (
    UPDATE ledger.poll_schedule s
    SET due_at = CASE WHEN c.moves THEN c.due_at ELSE s.due_at END,
        scheduled_for = CASE WHEN c.moves THEN c.due_at ELSE s.scheduled_for END,
        lane = CASE WHEN c.moves THEN c.lane ELSE s.lane END,
        backs_off = s.backs_off AND NOT c.moves,
        want_at = CASE WHEN c.waits THEN LEAST(s.want_at, c.due_at) ELSE s.want_at END,
        fingerprint = CASE WHEN NOT c.takes_over THEN s.fingerprint END
    FROM change c
    WHERE s.receipt_id = c.receipt_id AND (c.moves OR c.waits OR c.takes_over)
)
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
SELECT r.receipt_id, r.app_id, t.lane, t.due_at, t.due_at, r.environment IS NOT DISTINCT FROM 'Sandbox'
FROM turn t JOIN ledger.receipt r USING (receipt_id)
WHERE t.receipt_id NOT IN (SELECT receipt_id FROM change)
ORDER BY r.receipt_id
ON CONFLICT DO NOTHING
