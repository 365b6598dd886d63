-- Confirmation: locks one-time purchases ($1) in natural-key order, after the subscriptions, and returns the database's
-- clock after the locks.
SELECT p.purchase_id, p.version, p.as_of, p.purchased_at, p.polled_by, clock_timestamp() AS recorded_at
FROM ledger.purchase p
WHERE p.purchase_id = ANY($1::bigint[])
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR NO KEY UPDATE
