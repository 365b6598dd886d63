-- Returns what app $1 can grant: the entitlements in its catalog now, and its products, both those in the catalog and
-- those of the $2 subscriptions and purchases with the highest ids.
SELECT g.entitlement AS name
FROM ledger.app a JOIN ledger.catalog_grant g USING (app_id)
WHERE a.bundle_id = $1::text AND g.entitlement <> '' AND upper_inf(g.known) AND upper_inf(g.valid)
UNION
SELECT p.product_id FROM ledger.app a JOIN ledger.product p USING (app_id) WHERE a.bundle_id = $1::text
UNION
SELECT t.product_id
FROM ledger.app a
CROSS JOIN unnest(enum_range(NULL::ledger.environment)) AS e(environment)
CROSS JOIN LATERAL (
    SELECT s.subscription_id FROM ledger.subscription s
    WHERE s.app_id = a.app_id AND s.environment = e.environment
    ORDER BY s.original_transaction_id DESC LIMIT $2::int) s
JOIN ledger.subscription_span t ON t.subscription_id = s.subscription_id AND upper_inf(t.known)
WHERE a.bundle_id = $1::text
UNION
SELECT p.product_id
FROM ledger.app a
CROSS JOIN unnest(enum_range(NULL::ledger.environment)) AS e(environment)
CROSS JOIN LATERAL (
    SELECT p.product_id FROM ledger.purchase p
    WHERE p.app_id = a.app_id AND p.environment = e.environment
    ORDER BY p.original_transaction_id DESC LIMIT $2::int) p
WHERE a.bundle_id = $1::text
ORDER BY name
