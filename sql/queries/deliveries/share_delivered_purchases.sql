-- Deliveries: keeps settlements from changing one-time purchases ($1) until this transaction ends, in natural-key order.
SELECT FROM ledger.purchase p WHERE p.purchase_id = ANY($1::bigint[])
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR SHARE
