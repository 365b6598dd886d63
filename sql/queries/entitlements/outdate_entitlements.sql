-- Outdates what is stored about customers ($1): lookups compute it until a worker renews it, or stores it for the first
-- time.
INSERT INTO ledger.current_entitlements AS v
    (customer_id, app_id, catalog_changed_at, computed_at, spans, subscriptions, purchases)
SELECT c.customer_id, c.app_id, '-infinity', now(), '{}', '{}', '{}'
FROM ledger.customer c WHERE c.customer_id = ANY($1::bigint[])
ORDER BY c.customer_id
ON CONFLICT (customer_id) DO UPDATE SET catalog_changed_at = EXCLUDED.catalog_changed_at
