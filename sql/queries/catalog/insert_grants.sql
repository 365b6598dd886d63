-- Adds grants to app $1 ($2 products, $3 entitlements) at $4: without a start for a product never named before, else
-- from $4. Returns the grants.
INSERT INTO ledger.catalog_grant (app_id, product_id, entitlement, valid, known)
SELECT DISTINCT $1::int, n.product_id, n.entitlement,
       tstzrange(
           CASE WHEN EXISTS (
               SELECT FROM ledger.catalog_grant g WHERE g.app_id = $1::int AND g.product_id = n.product_id)
           THEN $4::timestamptz END, NULL),
       tstzrange($4::timestamptz, NULL)
FROM unnest($2::text[], $3::text[]) AS n(product_id, entitlement)
WHERE NOT EXISTS (
    SELECT FROM ledger.catalog_grant g
    WHERE g.app_id = $1::int AND g.product_id = n.product_id AND g.entitlement = n.entitlement
      AND upper_inf(g.known) AND upper_inf(g.valid))
RETURNING product_id, entitlement
