-- Orders: returns order $2 of the app with the bundle id $1; of customer $3 alone, by any name, if given.
SELECT o.order_id::text AS order_id, head.name AS customer, o.product_id, o.quantity, o.environment::text AS environment,
       o.state::text AS state, o.cause, o.created_at, o.expires_at, o.paid_at, o.transaction_id,
       ARRAY(SELECT d.delivery_id::text FROM ledger.delivery d WHERE d.order_id = o.order_id ORDER BY d.delivery_id)
           AS delivery_ids
FROM ledger.purchase_order o
JOIN ledger.app a ON a.app_id = o.app_id AND a.bundle_id = $1::text AND a.removed_at IS NULL
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE o.order_id = $2::text::uuid
  AND ($3::text IS NULL OR head.customer_id = (
      SELECT COALESCE(n.merged_into, n.customer_id) FROM ledger.customer n
      WHERE n.app_id = a.app_id AND n.name = $3::text))
