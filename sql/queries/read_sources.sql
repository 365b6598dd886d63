-- Explain: everything that gives, or gave, customer $2 of app $1 a right at $3, as known now. Of each right the first row
-- wins: the order is that of ledger.entitlements.
SELECT e.entitlement, e.granted, CASE WHEN e.granted THEN e.until END AS until, e.product_id,
       e.environment::text AS environment, e.checked_at, e.subscription_id, e.purchase_id
FROM (
    SELECT true AS is_verified, s.* FROM ledger.entitlement_source($1::int, $2::bigint, $3::timestamptz, now()) s
    UNION ALL
    SELECT false, s.*, NULL, NULL, NULL, NULL
    FROM ledger.provisional_source($1::int, $2::bigint, $3::timestamptz, now()) s) e
ORDER BY e.entitlement COLLATE "C", e.is_verified DESC, e.environment, e.granted DESC,
         CASE WHEN e.granted THEN e.until END DESC NULLS FIRST, e.checked_at DESC, e.product_id
