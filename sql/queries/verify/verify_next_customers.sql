-- Verify: returns the end of the next slice of at most $2 customers with stored entitlements after $1; null when there
-- are none.
SELECT max(n.customer_id) AS until
FROM (
    SELECT customer_id FROM ledger.current_entitlements
    WHERE customer_id > $1::bigint ORDER BY customer_id LIMIT $2::int) n
