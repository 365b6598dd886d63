-- Verify: by which lease and speed-up the worker works that gave the newest sign of life; none where no worker told.
SELECT w.lease_seconds, w.speedup FROM ledger.worker w
WHERE w.lease_seconds IS NOT NULL AND w.speedup IS NOT NULL
ORDER BY w.stopped_at IS NOT NULL, w.heartbeat_at DESC, w.worker_id DESC LIMIT 1
