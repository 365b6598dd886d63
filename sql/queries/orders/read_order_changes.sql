-- Orders: returns the changes of orders ($1), newest first, at most $2 of each.
SELECT n.order_id, c.state::text AS state, c.cause, c.code, c.changed_at
FROM unnest($1::text[]) WITH ORDINALITY AS n(order_id, place)
CROSS JOIN LATERAL (
    SELECT c.* FROM ledger.order_change c WHERE c.order_id = n.order_id::uuid
    ORDER BY c.ordinal DESC LIMIT $2::int) c
ORDER BY n.place, c.ordinal DESC
