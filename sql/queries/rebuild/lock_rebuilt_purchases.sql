-- Rebuild: locks and reads one-time purchases ($1) in natural-key order.
SELECT p.purchase_id, p.app_id, a.bundle_id, p.environment::text AS environment, p.original_transaction_id, p.product_id,
       p.version, p.facts, p.transaction_ids, p.as_of, p.recorded_at, p.checked_at, p.transaction_id, p.quantity,
       p.purchased_at, p.revoked_at, p.app_account_token, p.polled_by,
       p.next_check_at
FROM ledger.purchase p
JOIN ledger.app a USING (app_id)
WHERE p.purchase_id = ANY($1::bigint[])
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR NO KEY UPDATE OF p
