-- Removes workers that gave no sign of life for $1 days, the $2 oldest of them at most; says how many.
WITH old AS MATERIALIZED (
    SELECT worker_id FROM ledger.worker
    WHERE heartbeat_at < now() - make_interval(days => $1::int)
    ORDER BY worker_id LIMIT $2::int
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM ledger.worker w USING old WHERE w.worker_id = old.worker_id RETURNING 1
)
SELECT count(*) AS removed FROM removed
