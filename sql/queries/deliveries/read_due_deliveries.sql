-- Deliveries: returns what is due of app $1 in environment $2 after position $3, at most $4.
SELECT d.delivery_id, d.position, c.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, 'due' AS state, d.created_at, NULL::timestamptz AS settled_at, NULL AS settled_by,
       NULL AS skip_reason
FROM (
    SELECT q.delivery_id, q.position FROM ledger.due_delivery q
    WHERE q.app_id = $1::int AND q.environment = $2::text::ledger.environment AND q.position > $3::bigint
    ORDER BY q.position LIMIT $4::int) q
CROSS JOIN LATERAL (SELECT d.* FROM ledger.delivery d WHERE d.delivery_id = q.delivery_id OFFSET 0) d
CROSS JOIN LATERAL (
    SELECT head.name FROM ledger.customer c
    JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
    WHERE c.customer_id = d.customer_id OFFSET 0) c
ORDER BY q.position
