-- Lookup: returns what is stored of the present entitlements of customer $2 of app $1, and the clocks of their sources:
-- a row per source, at least one. No spans: nothing is stored, or another catalog outdated it; no customer_id: the
-- customer is unknown. PostgreSQL plans it once, because its parameters are no arrays.
SELECT 1::bigint AS place, now() AS now, c.customer_id, v.spans, k.subscription_id, k.purchase_id, k.as_of,
       k.checked_at
FROM (VALUES ($1::text, $2::text)) AS n(bundle_id, name)
LEFT JOIN ledger.app a USING (bundle_id)
LEFT JOIN LATERAL (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.customer c WHERE c.app_id = a.app_id AND c.name = n.name OFFSET 0) c ON true
LEFT JOIN LATERAL (
    SELECT v.* FROM ledger.current_entitlements v
    WHERE v.customer_id = c.customer_id AND v.catalog_changed_at = a.catalog_changed_at OFFSET 0) v ON true
LEFT JOIN LATERAL (
    SELECT s.subscription_id, NULL::bigint AS purchase_id, s.as_of, s.checked_at
    FROM ledger.subscription s WHERE s.subscription_id = ANY(v.subscriptions)
    UNION ALL
    SELECT NULL, p.purchase_id, p.as_of, p.checked_at FROM ledger.purchase p WHERE p.purchase_id = ANY(v.purchases)) k
    ON true
