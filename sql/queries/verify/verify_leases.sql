-- Verify: returns receipts after $1 up to $2 leased for longer than their worker's lease, extended after crashes; see
-- claim.sql.
SELECT p.receipt_id AS key, a.bundle_id, r.environment::text AS environment, NULL AS original_transaction_id,
       NULL AS product_id, p.receipt_id,
       format('worker %s has it until %s UTC, longer than its lease of %s s after %s crashes', p.leased_by,
              date_trunc('second', p.due_at AT TIME ZONE 'UTC'), w.lease_seconds, p.crashes) AS detail
FROM ledger.poll_schedule p
JOIN ledger.receipt r USING (receipt_id)
JOIN ledger.app a ON a.app_id = p.app_id
JOIN ledger.worker w ON w.worker_id = p.leased_by
WHERE p.receipt_id > $1::bigint AND p.receipt_id <= $2::bigint
  AND p.due_at > now() + make_interval(
      secs => w.lease_seconds * (1 << LEAST(p.crashes, CASE p.lane WHEN 'quarantine' THEN 10 ELSE 6 END)) + 1)
ORDER BY p.receipt_id
