-- Deliveries: returns what deliveries ($2) of app $1 are about.
SELECT d.delivery_id, d.purchase_id, d.subscription_id, d.order_id::text AS order_id
FROM ledger.delivery d WHERE d.delivery_id = ANY($2::bigint[]) AND d.app_id = $1::int
ORDER BY d.delivery_id
