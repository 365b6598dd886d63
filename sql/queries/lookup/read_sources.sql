-- Explain: returns everything that gives, or gave, customer $1 an entitlement at $2, as known now. For each entitlement
-- the first row wins: the order is that of ledger.entitlements.
SELECT e.entitlement, e.granted, e.until, e.product_id, e.environment::text AS environment, e.checked_at, e.subscription_id,
       e.purchase_id, h.given_by, h.reason, h.ended_by, h.end_reason, lower(h.valid) AS since
FROM ledger.right_source(ARRAY[$1::bigint], $2::timestamptz, 'infinity') e
LEFT JOIN ledger.manual_grant h USING (manual_grant_id)
ORDER BY e.entitlement COLLATE "C", e.place, e.granted DESC, e.environment, e.until DESC NULLS FIRST, e.basis DESC,
         e.checked_at DESC, e.product_id
