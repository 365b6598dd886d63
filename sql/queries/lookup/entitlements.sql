-- Returns the entitlements of customers ($2) of apps ($1) at $3 as known at $4 (nulls: now); place is the customer's
-- number, from 1.
WITH asked AS MATERIALIZED (
    SELECT n.place, c.customer_id
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS n(bundle_id, name, place)
    JOIN ledger.app a USING (bundle_id)
    CROSS JOIN LATERAL (
        SELECT c.customer_id FROM ledger.customer c WHERE c.app_id = a.app_id AND c.name = n.name OFFSET 0) c
)
SELECT a.place, e.entitlement, e.granted, e.until, e.product_id, e.state, e.reason, e.environment::text AS environment,
       e.basis, e.as_of, e.checked_at, e.expires_at
FROM ledger.entitlements(
    ARRAY(SELECT DISTINCT customer_id FROM asked), $3::timestamptz, $4::timestamptz) e
JOIN asked a USING (customer_id)
ORDER BY a.place, e.entitlement COLLATE "C"
