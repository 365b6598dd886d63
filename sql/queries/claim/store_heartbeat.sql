-- Records a heartbeat of worker $1; if $2 is true, that it stopped. What checks single receipts on request never counts as a
-- worker. Returns how many migrations a program must know to go on.
UPDATE ledger.worker w
SET heartbeat_at = now(),
    stopped_at = CASE WHEN $2::boolean THEN now() WHEN w.stopped_at = w.started_at THEN w.stopped_at END
WHERE w.worker_id = $1::int
RETURNING (SELECT program_min FROM ledger.compatibility) AS program_min
