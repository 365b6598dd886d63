-- Deliveries: keeps settlements from changing subscriptions ($1) until this transaction ends, in natural-key order.
SELECT FROM ledger.subscription s WHERE s.subscription_id = ANY($1::bigint[])
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR SHARE
