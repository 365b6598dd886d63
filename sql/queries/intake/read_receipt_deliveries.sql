-- Upload: returns what the purchases ($1) and subscriptions ($2) in a receipt gave customer $4 of the app of receipt
-- $3, by any name, and what they are still to give; the newest $5.
SELECT d.delivery_id, d.position, head.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, d.state::text AS state, d.created_at, d.settled_at, d.settled_by, d.skip_reason
FROM ledger.delivery_now d
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE (d.purchase_id = ANY($1::bigint[]) OR d.subscription_id = ANY($2::bigint[]))
  AND COALESCE(c.merged_into, c.customer_id) = (
      SELECT COALESCE(n.merged_into, n.customer_id)
      FROM ledger.receipt r JOIN ledger.customer n USING (app_id)
      WHERE r.receipt_id = $3::bigint AND n.name = $4::text)
ORDER BY d.delivery_id DESC LIMIT $5::int
