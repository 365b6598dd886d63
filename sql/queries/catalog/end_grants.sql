-- Ends grants of app $1 that are not among ($2 products, $3 entitlements) at $4: they stay true for the time before.
-- Returns those.
WITH ended AS (
    UPDATE ledger.catalog_grant g SET known = tstzrange(lower(g.known), $4::timestamptz)
    WHERE g.app_id = $1::int AND upper_inf(g.known) AND upper_inf(g.valid)
      AND NOT EXISTS (
        SELECT FROM unnest($2::text[], $3::text[]) AS n(product_id, entitlement)
        WHERE n.product_id = g.product_id AND n.entitlement = g.entitlement)
    RETURNING g.*
)
INSERT INTO ledger.catalog_grant (app_id, product_id, entitlement, valid, known)
SELECT app_id, product_id, entitlement, tstzrange(lower(valid), $4::timestamptz), tstzrange($4::timestamptz, NULL) FROM ended
RETURNING product_id, entitlement
