-- Announces a worker: host $1, process $2; $3 true: it asks about single receipts when told to, so nobody counts on it.
INSERT INTO ledger.worker (host, pid, stopped_at) VALUES ($1::text, $2::int, CASE WHEN $3::boolean THEN now() END)
RETURNING worker_id
