-- What customer $2 of the app $1 may use at $3 as known at $4 (nulls: now). Of an answer later than $4 the clocks are not told.
SELECT e.entitlement, e.granted, e.until, e.product_id, e.state, e.reason, e.environment::text AS environment, e.basis,
       CASE WHEN $4::timestamptz IS NULL OR e.checked_at <= $4::timestamptz THEN e.as_of END AS as_of,
       CASE WHEN $4::timestamptz IS NULL OR e.checked_at <= $4::timestamptz THEN e.checked_at END AS checked_at,
       CASE WHEN NOT e.granted AND e.basis = 'verified' THEN (
           SELECT max(s.expires_at) FROM ledger.ownership o JOIN ledger.subscription s USING (subscription_id)
           WHERE o.customer_id = c.customer_id AND s.environment = e.environment AND s.checked_at = e.checked_at)
       END AS expires_at
FROM ledger.app a
JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
CROSS JOIN LATERAL ledger.entitlements(
    a.app_id, c.customer_id, COALESCE($3::timestamptz, now()), COALESCE($4::timestamptz, now())) e
WHERE a.bundle_id = $1::text
ORDER BY e.entitlement COLLATE "C"
