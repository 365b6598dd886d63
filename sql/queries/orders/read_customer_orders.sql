-- Orders: returns those of a customer ($2, by any name) of app $1 after order $4, oldest first, at most $5; of state $3
-- alone, if given.
SELECT o.order_id::text AS order_id, head.name AS customer, o.product_id, o.quantity, o.environment::text AS environment,
       o.state::text AS state, o.cause, o.created_at, o.expires_at, o.paid_at, o.transaction_id,
       ARRAY(SELECT d.delivery_id::text FROM ledger.delivery d WHERE d.order_id = o.order_id ORDER BY d.delivery_id)
           AS delivery_ids
FROM ledger.purchase_order o
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE o.customer_id IN (
    SELECT n.customer_id FROM ledger.customer asked
    JOIN ledger.customer n ON COALESCE(n.merged_into, n.customer_id) = COALESCE(asked.merged_into, asked.customer_id)
     AND n.app_id = asked.app_id
    WHERE asked.app_id = $1::int AND asked.name = $2::text)
  AND ($3::text IS NULL OR o.state = $3::text::ledger.order_state)
  AND ($4::text IS NULL OR (o.created_at, o.order_id) > (
      SELECT p.created_at, p.order_id FROM ledger.purchase_order p WHERE p.order_id = $4::text::uuid))
ORDER BY o.created_at, o.order_id LIMIT $5::int
