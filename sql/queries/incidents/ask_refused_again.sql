-- Schedules receipts refused during incidents that are over for another check, at most $1 receipts. It spreads them so
-- that about $2 of an incident come due a second, but all within $3 seconds. Receipts verified since then need no
-- check; leased or locked ones are being checked already. Returns the receipts.
WITH ended AS MATERIALIZED (
    SELECT f.receipt_id,
           now() + make_interval(secs => random() * LEAST($3::float8, last.refused / $2::float8)) AS due_at
    FROM ledger.refusal f
    CROSS JOIN LATERAL (
        SELECT i.refused, i.closed_at FROM ledger.incident i
        WHERE i.app_id = f.app_id AND i.kind = 'refusals' ORDER BY i.incident_id DESC LIMIT 1) last
    WHERE NOT f.counts AND last.closed_at IS NOT NULL
    ORDER BY f.receipt_id LIMIT $1::int
), idle AS MATERIALIZED (
    SELECT s.receipt_id, e.due_at
    FROM ended e JOIN ledger.poll_schedule s USING (receipt_id) JOIN ledger.receipt r USING (receipt_id)
    WHERE s.leased_by IS NULL AND s.due_at > e.due_at AND r.outcome <> 'verified'
    FOR NO KEY UPDATE OF s SKIP LOCKED
), hastened AS (
    UPDATE ledger.poll_schedule s SET due_at = idle.due_at, scheduled_for = idle.due_at
    FROM idle WHERE s.receipt_id = idle.receipt_id
)
DELETE FROM ledger.refusal f USING ended e WHERE f.receipt_id = e.receipt_id
RETURNING f.receipt_id
