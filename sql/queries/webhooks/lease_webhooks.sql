-- Worker: leases webhooks that no worker has, for $1 seconds, at most $2; the fence refuses the writes of the last worker.
UPDATE ledger.webhook w SET fence = w.fence + 1, lease_until = clock_timestamp() + make_interval(secs => $1::float8)
WHERE w.webhook_id IN (
    SELECT n.webhook_id FROM ledger.webhook n
    WHERE n.state <> 'off' AND n.lease_until < clock_timestamp()
    ORDER BY n.webhook_id LIMIT $2::int FOR NO KEY UPDATE SKIP LOCKED)
RETURNING w.webhook_id, w.fence, w.position
