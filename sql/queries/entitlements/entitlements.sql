-- Lookup: returns the entitlements of customers ($2) of apps ($1) at $3 as known at $4 (nulls: now), at least one row per
-- customer. place is the customer's number, from 1; no entitlement: the customer has none, or is unknown.
WITH asked AS MATERIALIZED (
    SELECT n.place, c.customer_id
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS n(bundle_id, name, place)
    LEFT JOIN ledger.app a USING (bundle_id)
    LEFT JOIN LATERAL (
        SELECT c.customer_id FROM ledger.customer c WHERE c.app_id = a.app_id AND c.name = n.name OFFSET 0) c ON true
)
SELECT a.place, now() AS now, e.entitlement, e.granted, e.until, e.product_id, e.state, e.reason,
       e.environment::text AS environment, e.basis, e.as_of, e.checked_at, e.expires_at, e.ended_at
FROM asked a
LEFT JOIN ledger.entitlements(
    ARRAY(SELECT DISTINCT customer_id FROM asked WHERE customer_id IS NOT NULL), $3::timestamptz, $4::timestamptz) e
    USING (customer_id)
ORDER BY a.place, e.entitlement COLLATE "C"
