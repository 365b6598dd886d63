-- Deliveries: returns what is due of app $1 in environment $2 after position $3, at most $4.
SELECT d.delivery_id, d.position, c.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, d.state::text AS state, d.created_at, d.settled_at, d.settled_by, d.skip_reason
FROM ledger.delivery d JOIN ledger.customer c USING (customer_id)
WHERE d.app_id = $1::int AND d.environment = $2::text::ledger.environment AND d.state = 'due' AND d.position > $3::bigint
ORDER BY d.position LIMIT $4::int
