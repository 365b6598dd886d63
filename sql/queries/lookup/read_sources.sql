-- Explain: returns everything that gives, or gave, customer $1 an entitlement at $2, as known now. For each entitlement
-- the first row wins: the order is that of ledger.entitlements.
SELECT s.entitlement, s.granted, s.until, s.product_id, s.environment::text AS environment, e.checked_at,
       s.subscription_id, s.purchase_id, h.given_by, h.reason, h.ended_by, h.end_reason, lower(h.valid) AS since
FROM ledger.entitlement_sources(ARRAY[$1::bigint], $2::timestamptz, 'infinity') e
CROSS JOIN LATERAL (SELECT (e.source).*) s
LEFT JOIN ledger.manual_grant h USING (manual_grant_id)
ORDER BY s.entitlement COLLATE "C", s.place, s.granted DESC, s.environment, s.until DESC NULLS FIRST,
         s.basis COLLATE "C" DESC, e.checked_at DESC, s.product_id COLLATE "C", s.subscription_id, s.purchase_id
