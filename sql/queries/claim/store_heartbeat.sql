-- Records a heartbeat of worker $1; if $2 is true, that it stopped. Returns how many migrations a program must know to
-- go on.
UPDATE ledger.worker SET heartbeat_at = now(), stopped_at = CASE WHEN $2::boolean THEN now() END WHERE worker_id = $1::int
RETURNING (SELECT program_min FROM ledger.compatibility) AS program_min
