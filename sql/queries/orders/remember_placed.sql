-- Orders: makes the answers to the Idempotency-Keys ($2) of orders ($1) what these are now; returns those that changed.
UPDATE ledger.order_request r SET state = o.state
FROM unnest($1::text[], $2::text[]) AS n(order_id, request_key)
JOIN ledger.purchase_order o ON o.order_id = n.order_id::uuid
WHERE r.app_id = o.app_id AND r.request_key = n.request_key AND r.order_id = o.order_id AND r.state <> o.state
RETURNING r.order_id::text AS order_id, r.state::text AS state
