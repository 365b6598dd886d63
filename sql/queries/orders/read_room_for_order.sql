-- Orders: returns whether the catalog of app $1 knows product $3, says what it is and sells one at a time, how many open
-- orders customer $2 has that give way to no other one, by any name, and in how many seconds the first of these expires.
SELECT p.product_id IS NOT NULL AS is_known, p.kind IS NOT NULL AS has_kind,
       COALESCE(ledger.is_bought_singly(p.kind), false) AS is_single, o.open_orders,
       GREATEST(1, ceil(extract(epoch FROM o.expires_at - clock_timestamp())))::bigint AS seconds_left
FROM ledger.app a
LEFT JOIN ledger.product p ON p.app_id = a.app_id AND p.product_id = $3::text
CROSS JOIN LATERAL (
    SELECT count(*) AS open_orders, min(o.expires_at) AS expires_at
    FROM ledger.customer c
    CROSS JOIN LATERAL (
        SELECT o.expires_at FROM ledger.purchase_order o
        WHERE o.customer_id = COALESCE(c.merged_into, c.customer_id)
          AND o.state IN ('created', 'purchasing', 'deferred')
          AND (o.state <> 'created' OR EXISTS (SELECT FROM ledger.order_receipt x WHERE x.order_id = o.order_id))
        OFFSET 0) o
    WHERE c.app_id = a.app_id AND c.name = $2::text) o
WHERE a.bundle_id = $1::text AND a.removed_at IS NULL
