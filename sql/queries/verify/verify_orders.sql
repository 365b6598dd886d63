-- Verify: returns orders paid by purchases, or by subscriptions unless $3, after $1 up to $2, whose delivery is missing,
-- tied to none, or settled without them; and those that a possible duplicate pays.
WITH purchased AS MATERIALIZED (
    SELECT COALESCE(array_agg(p.purchase_id), '{}') AS ids FROM ledger.purchase p
    WHERE $3::boolean AND p.purchase_id > $1::bigint AND p.purchase_id <= $2::bigint
), subscribed AS MATERIALIZED (
    SELECT COALESCE(array_agg(s.subscription_id), '{}') AS ids FROM ledger.subscription s
    WHERE NOT $3::boolean AND s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint
)
SELECT COALESCE(d.purchase_id, d.subscription_id) AS key, a.bundle_id, o.environment::text AS environment,
       o.transaction_id AS original_transaction_id, o.product_id, NULL::bigint AS receipt_id,
       format('order %s %s', d.order_id, d.doubt) AS detail
FROM purchased p CROSS JOIN subscribed s
CROSS JOIN LATERAL ledger.orders_in_doubt(p.ids, s.ids) d
JOIN ledger.purchase_order o USING (order_id)
JOIN ledger.app a USING (app_id)
ORDER BY key
