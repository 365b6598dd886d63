-- Locks subscriptions whose outage allowance has run out, at most $1, with the span that ends their access.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.version, s.recorded_at,
       s.polled_by, lower(p.valid) AS valid_from, p.held_until, p.product_id, p.flags,
       clock_timestamp() AS now,
       (SELECT o.customer_id FROM ledger.ownership o
        WHERE o.subscription_id = s.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)) AS customer_id
FROM ledger.subscription s
JOIN ledger.subscription_span p USING (subscription_id)
WHERE upper_inf(p.known) AND p.held_until <= now()
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
LIMIT $1::int
FOR NO KEY UPDATE OF s SKIP LOCKED
