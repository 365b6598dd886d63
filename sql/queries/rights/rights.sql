-- Returns the present entitlements of customers ($2) of apps ($1) and their basis; place is the customer's number, from
-- 1. Known customers have at least one row.
WITH asked AS MATERIALIZED (
    SELECT n.place, c.customer_id
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS n(bundle_id, name, place)
    JOIN ledger.app a USING (bundle_id)
    CROSS JOIN LATERAL (
        SELECT c.customer_id FROM ledger.customer c WHERE c.app_id = a.app_id AND c.name = n.name OFFSET 0) c
)
SELECT a.place, b.customers, b.subscriptions, b.purchases, b.lasts_until, e.entitlement, e.granted, e.until, e.product_id,
       e.state, e.reason, e.environment::text AS environment, e.basis, e.as_of, e.checked_at, e.expires_at, e.subscription_id, e.purchase_id,
       e.is_tied
FROM asked a
JOIN ledger.right_basis(ARRAY(SELECT DISTINCT customer_id FROM asked)) b USING (customer_id)
LEFT JOIN ledger.entitlement_sources(ARRAY(SELECT DISTINCT customer_id FROM asked), NULL, NULL) e USING (customer_id)
ORDER BY a.place, e.entitlement COLLATE "C"
