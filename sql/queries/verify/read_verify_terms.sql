-- Verify: returns lease and speed-up of the worker with the newest heartbeat; no row if no worker reported them.
SELECT w.lease_seconds, w.speedup FROM ledger.worker w
WHERE w.lease_seconds IS NOT NULL AND w.speedup IS NOT NULL
ORDER BY w.stopped_at IS NOT NULL, w.heartbeat_at DESC, w.worker_id DESC LIMIT 1
