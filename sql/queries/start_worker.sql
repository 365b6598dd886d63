-- Announces a worker: host $1, process $2.
INSERT INTO ledger.worker (host, pid) VALUES ($1::text, $2::int) RETURNING worker_id
