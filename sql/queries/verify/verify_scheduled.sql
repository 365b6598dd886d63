-- Verify: returns unscheduled receipts after $1 up to $2 for which Apple's last answer was not usable, or none ever
-- was. Those that notifications made wait for a server key.
SELECT r.receipt_id AS key, a.bundle_id, r.environment::text AS environment, NULL AS original_transaction_id,
       NULL AS product_id, r.receipt_id,
       CASE WHEN r.asked_at IS NULL THEN 'Apple was never asked about it, and it is not scheduled'
            ELSE 'the last answer about it was none, and it is not scheduled' END AS detail
FROM ledger.receipt r
JOIN ledger.app a USING (app_id)
WHERE r.receipt_id > $1::bigint AND r.receipt_id <= $2::bigint AND r.erased_at IS NULL
  AND COALESCE(r.outcome, 'indeterminate') = 'indeterminate'
  AND NOT EXISTS (SELECT FROM ledger.poll_schedule p WHERE p.receipt_id = r.receipt_id)
  AND NOT (r.form = 'transaction_id' AND NOT EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = r.app_id)
    AND NOT EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
    AND NOT EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id))
ORDER BY r.receipt_id
