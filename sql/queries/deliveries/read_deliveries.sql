-- Deliveries: returns those of app $1 in environment $2 after position $3, at most $4; of state $5 alone, if given.
SELECT d.delivery_id, d.position, head.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, d.state::text AS state, d.created_at, d.settled_at, d.settled_by, d.skip_reason
FROM ledger.delivery_now d JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE d.app_id = $1::int AND d.environment = $2::text::ledger.environment AND d.position > $3::bigint
  AND ($5::text IS NULL OR d.state = $5::text::ledger.delivery_state)
ORDER BY d.position LIMIT $4::int
