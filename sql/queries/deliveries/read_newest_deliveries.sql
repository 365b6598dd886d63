-- Deliveries: returns those of customers ($1), newest first, at most $2.
SELECT d.delivery_id, d.position, head.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, d.state::text AS state, d.created_at, d.settled_at, d.settled_by, d.skip_reason
FROM ledger.delivery_now d JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE d.customer_id = ANY($1::bigint[])
ORDER BY d.delivery_id DESC LIMIT $2::int
