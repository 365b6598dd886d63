-- Rebuild: locks and reads one-time purchases ($1) in natural-key order.
SELECT p.purchase_id, p.app_id, a.bundle_id, p.environment::text AS environment, p.original_transaction_id, p.product_id,
       p.version, p.facts, p.transaction_ids, d.kind::text AS kind, ledger.as_of(p, poller) AS as_of, p.recorded_at,
       ledger.checked_at(p, poller) AS checked_at, p.transaction_id, p.quantity,
       p.purchased_at, p.revoked_at, p.app_account_token, p.polled_by,
       ledger.next_check_at(p, poller) AS next_check_at
FROM ledger.purchase p
LEFT JOIN ledger.product d USING (app_id, product_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
WHERE p.purchase_id = ANY($1::bigint[])
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR NO KEY UPDATE OF p
