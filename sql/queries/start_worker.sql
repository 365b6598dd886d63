-- Announces a worker: host $1, process $2; $3 true: it asks about single receipts when told to, so nobody counts on it; $4 lease
-- seconds and $5 speed-up by which it works.
INSERT INTO ledger.worker (host, pid, stopped_at, lease_seconds, speedup)
VALUES ($1::text, $2::int, CASE WHEN $3::boolean THEN now() END, $4::float8, $5::int)
RETURNING worker_id
