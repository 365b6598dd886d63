-- Returns the present catalog of app $1.
SELECT p.product_id, p.group_id, p.level, p.period, p.price_milliunits, p.currency, p.kind::text AS kind,
       p.credit, p.units, p.delivers_since, p.slot, p.slot_place,
       ARRAY(SELECT g.entitlement FROM ledger.catalog_grant g
             WHERE g.app_id = p.app_id AND g.product_id = p.product_id AND upper_inf(g.known) AND upper_inf(g.valid)
               AND g.entitlement <> ''
             ORDER BY g.entitlement COLLATE "C") AS entitlements
FROM ledger.product p JOIN ledger.app a USING (app_id)
WHERE a.bundle_id = $1::text ORDER BY p.product_id COLLATE "C"
