-- Orders: locks and returns the undelivered orders of other customers than $3 that one-time purchases $1 or subscriptions
-- $2 pay, which now belong to $3.
SELECT r.order_id::text AS order_id, r.purchase_id, r.subscription_id, r.period_id
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS n(purchase_id, subscription_id, customer_id)
CROSS JOIN LATERAL (
    SELECT p.order_id FROM ledger.purchase_order p WHERE p.purchase_id = n.purchase_id AND p.state = 'paid'
    UNION ALL
    SELECT s.order_id FROM ledger.purchase_order s WHERE s.subscription_id = n.subscription_id AND s.state = 'paid') paid
JOIN ledger.purchase_order r USING (order_id)
JOIN ledger.customer c ON c.customer_id = r.customer_id
WHERE COALESCE(c.merged_into, c.customer_id) <> n.customer_id
ORDER BY r.order_id FOR NO KEY UPDATE OF r
