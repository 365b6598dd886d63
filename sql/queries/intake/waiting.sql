-- Returns per app: receipts that wait for Apple's first answer, calls a second (0: unlimited), and whether a worker is
-- alive.
SELECT a.bundle_id, b.rate,
       (SELECT count(*) FROM ledger.poll_schedule s WHERE s.app_id = a.app_id AND s.lane IN ('new', 'import')) AS receipts,
       EXISTS (SELECT FROM ledger.worker w
               WHERE w.stopped_at IS NULL AND w.heartbeat_at > now() - interval '2 minutes') AS has_worker
FROM ledger.app a JOIN ledger.app_budget b USING (app_id)
ORDER BY a.bundle_id COLLATE "C"
