-- Verify: returns receipts after $1 up to $2 whose requested check is late by more than their lease of $3 seconds,
-- which is longer after crashes. A receipt in quarantine keeps its schedule.
SELECT p.receipt_id AS key, a.bundle_id, r.environment::text AS environment, NULL AS original_transaction_id,
       NULL AS product_id, p.receipt_id,
       format('a check was wanted by %s UTC', date_trunc('second', p.want_at AT TIME ZONE 'UTC')) AS detail
FROM ledger.poll_schedule p
JOIN ledger.receipt r USING (receipt_id)
JOIN ledger.app a ON a.app_id = p.app_id
LEFT JOIN ledger.worker w ON w.worker_id = p.leased_by
WHERE p.receipt_id > $1::bigint AND p.receipt_id <= $2::bigint AND p.lane <> 'quarantine'
  AND p.want_at < now() - make_interval(
      secs => COALESCE(w.lease_seconds, $3::float8) * (1 << LEAST(p.crashes, 6)))
ORDER BY p.receipt_id
