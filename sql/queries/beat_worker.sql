-- Says that worker $1 is alive; $2 true: that it stopped. Answers how many migrations a program must know to go on.
UPDATE ledger.worker SET heartbeat_at = now(), stopped_at = CASE WHEN $2::boolean THEN now() END WHERE worker_id = $1::int
RETURNING (SELECT program_min FROM ledger.compatibility) AS program_min
