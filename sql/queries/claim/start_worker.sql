-- Registers a worker: host $1, process $2; $3 true: it checks single receipts on request, so no work depends on it; $4
-- its lease seconds and $5 its speed-up.
INSERT INTO ledger.worker (host, pid, stopped_at, lease_seconds, speedup)
VALUES ($1::text, $2::int, CASE WHEN $3::boolean THEN now() END, $4::float8, $5::int)
RETURNING worker_id
