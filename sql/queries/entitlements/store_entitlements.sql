-- Stores what customers ($1) may use from now on. It runs after the changes of its transaction, and the customers are
-- locked.
INSERT INTO ledger.current_entitlements
    (customer_id, app_id, catalog_changed_at, computed_at, spans, subscriptions, purchases)
SELECT e.customer_id, e.app_id, e.catalog_changed_at, e.computed_at, e.spans, e.subscriptions, e.purchases
FROM ledger.compute_entitlements($1::bigint[]) e
ORDER BY e.customer_id
ON CONFLICT (customer_id) DO UPDATE
SET catalog_changed_at = EXCLUDED.catalog_changed_at, computed_at = EXCLUDED.computed_at, spans = EXCLUDED.spans,
    subscriptions = EXCLUDED.subscriptions, purchases = EXCLUDED.purchases
