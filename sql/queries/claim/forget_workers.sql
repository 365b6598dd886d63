-- Deletes workers without a heartbeat for $1 days, at most the $2 oldest; returns their number.
WITH old AS MATERIALIZED (
    SELECT worker_id FROM ledger.worker
    WHERE heartbeat_at < now() - make_interval(days => $1::int)
    ORDER BY worker_id LIMIT $2::int
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM ledger.worker w USING old WHERE w.worker_id = old.worker_id RETURNING 1
)
SELECT count(*) AS removed FROM removed
