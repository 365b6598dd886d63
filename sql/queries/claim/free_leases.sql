-- Makes due what processes had leased that are gone, at most $1 receipts of each app and lane; returns how many. Only first
-- leases: what crashed a process before waits for the end of its lease. No lease outlives its owner's last heartbeat by
-- more than itself, so only the beginning of the due index is read, and nothing where no process is gone.
WITH gone AS MATERIALIZED (
    SELECT w.worker_id, COALESCE(w.lease_seconds, 60) AS seconds FROM ledger.worker w
    WHERE ledger.gone_at(w) <= now()
      AND w.heartbeat_at > now() - make_interval(secs => COALESCE(w.lease_seconds, 60) + 5)
), held AS MATERIALIZED (
    SELECT due.receipt_id
    FROM ledger.app a
    CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
    CROSS JOIN LATERAL (
        SELECT s.receipt_id FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.crashes = 0
          AND s.due_at > now() AND s.due_at <= now() + make_interval(secs => (SELECT max(g.seconds) FROM gone g))
          AND s.leased_by IN (SELECT g.worker_id FROM gone g)
        ORDER BY s.due_at LIMIT $1::int
        FOR NO KEY UPDATE SKIP LOCKED) due
    WHERE EXISTS (SELECT FROM gone)
), freed AS (
    UPDATE ledger.poll_schedule s SET due_at = now() FROM held h WHERE s.receipt_id = h.receipt_id RETURNING 1
)
SELECT count(*) AS freed FROM freed
