-- Reverses refusals that came before their app's incident was recognised, at most $1: they no longer count, and a
-- receipt that they retired is scheduled again, in an hour. A locked schedule row is being checked, settled or uploaded
-- at this moment; its receipt's turn is next time. Returns the receipts.
WITH refused AS MATERIALIZED (
    SELECT f.receipt_id, f.app_id, f.once_verified, f.rejections_before, s.receipt_id IS NULL AS retired
    FROM ledger.incident i JOIN ledger.refusal f USING (app_id)
    LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    WHERE i.kind = 'refusals' AND i.closed_at IS NULL AND f.counts
    ORDER BY f.receipt_id LIMIT $1::int
), idle AS MATERIALIZED (
    SELECT s.receipt_id FROM ledger.poll_schedule s
    WHERE s.receipt_id IN (SELECT receipt_id FROM refused)
    FOR NO KEY UPDATE SKIP LOCKED
), taken AS MATERIALIZED (
    SELECT * FROM refused WHERE retired OR receipt_id IN (SELECT receipt_id FROM idle)
), scheduled AS (
    INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
    SELECT t.receipt_id, t.app_id, CASE WHEN t.once_verified THEN 'sweep'::ledger.lane ELSE 'import' END, hour.at, hour.at,
           r.environment IS NOT DISTINCT FROM 'Sandbox'
    FROM taken t JOIN ledger.receipt r USING (receipt_id) CROSS JOIN (SELECT now() + interval '1 hour' AS at) hour
    WHERE t.retired ORDER BY t.receipt_id
    ON CONFLICT DO NOTHING
), restored AS (
    UPDATE ledger.receipt r
    SET rejections = LEAST(r.rejections, t.rejections_before),
        rejected_since = CASE WHEN LEAST(r.rejections, t.rejections_before) > 0 THEN r.rejected_since END
    FROM taken t WHERE r.receipt_id = t.receipt_id
)
UPDATE ledger.refusal f SET counts = false FROM taken t WHERE f.receipt_id = t.receipt_id
RETURNING f.receipt_id
