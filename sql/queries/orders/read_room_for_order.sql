-- Orders: returns whether the catalog of app $1 knows product $3 and says what it is, and how many open orders customer $2
-- has, by any name.
SELECT p.product_id IS NOT NULL AS is_known, p.kind IS NOT NULL AS has_kind, (
           SELECT count(*)
           FROM ledger.customer c
           CROSS JOIN LATERAL (
               SELECT FROM ledger.purchase_order o
               WHERE o.customer_id = COALESCE(c.merged_into, c.customer_id)
                 AND o.state IN ('created', 'purchasing', 'deferred') OFFSET 0) o
           WHERE c.app_id = a.app_id AND c.name = $2::text) AS open_orders
FROM ledger.app a
LEFT JOIN ledger.product p ON p.app_id = a.app_id AND p.product_id = $3::text
WHERE a.bundle_id = $1::text AND a.removed_at IS NULL
