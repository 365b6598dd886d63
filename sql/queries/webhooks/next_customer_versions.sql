-- Entitlements changed: returns the next versions of the streams of customers ($1), which are locked, and the instant to record,
-- no earlier than $2.
SELECT n.customer_id, c.app_id, c.name, COALESCE(max(e.version), 0) + 1 AS version,
       GREATEST(clock_timestamp(), $2::timestamptz) AS recorded_at
FROM unnest($1::bigint[]) AS n(customer_id)
JOIN ledger.customer c USING (customer_id)
LEFT JOIN ledger.event e ON e.customer_id = n.customer_id AND e.subscription_id IS NULL AND e.purchase_id IS NULL
WHERE c.erased_at IS NULL
GROUP BY n.customer_id, c.app_id, c.name
ORDER BY n.customer_id
