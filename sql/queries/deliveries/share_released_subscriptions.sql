-- Deliveries: the next subscriptions of app $1 after $2, at most $3, kept from settlements until this transaction ends.
SELECT s.subscription_id FROM ledger.subscription s
WHERE s.subscription_id IN (
    SELECT n.subscription_id FROM ledger.subscription n
    WHERE n.subscription_id > $2::bigint AND n.app_id = $1::int
    ORDER BY n.subscription_id LIMIT $3::int)
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR SHARE
