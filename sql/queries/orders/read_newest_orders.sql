-- Orders: returns those of customers ($1), newest first, at most $2, with the price that was shown.
SELECT o.order_id::text AS order_id, head.name AS customer, o.product_id, o.quantity, o.environment::text AS environment,
       o.state::text AS state, o.cause, o.created_at, o.expires_at, o.paid_at, o.transaction_id,
       ARRAY(SELECT d.delivery_id::text FROM ledger.delivery d WHERE d.order_id = o.order_id ORDER BY d.delivery_id)
           AS delivery_ids, o.price_milliunits, o.currency
FROM ledger.purchase_order o
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE o.customer_id = ANY($1::bigint[])
ORDER BY o.created_at DESC, o.order_id DESC LIMIT $2::int
