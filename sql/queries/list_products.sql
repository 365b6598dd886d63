-- The catalog of app $1 as it applies now.
SELECT p.product_id, p.group_id, p.level, p.period, p.price_milliunits, p.currency,
       (SELECT string_agg(g.entitlement, ',' ORDER BY g.entitlement COLLATE "C") FROM ledger.catalog_grant g
        WHERE g.app_id = p.app_id AND g.product_id = p.product_id AND upper_inf(g.known) AND g.valid @> now()) AS entitlements
FROM ledger.product p JOIN ledger.app a USING (app_id)
WHERE a.bundle_id = $1::text ORDER BY p.product_id COLLATE "C"
