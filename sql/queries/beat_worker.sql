-- Says that worker $1 is alive; $2 true: that it stopped.
UPDATE ledger.worker SET heartbeat_at = now(), stopped_at = CASE WHEN $2::boolean THEN now() END WHERE worker_id = $1::int
