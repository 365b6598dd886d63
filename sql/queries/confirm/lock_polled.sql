-- Confirmation: locks the subscriptions that receipts ($1) poll, in natural-key order, after the schedule rows.
SELECT s.subscription_id, s.polled_by
FROM ledger.subscription s
WHERE s.polled_by = ANY($1::bigint[])
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE
