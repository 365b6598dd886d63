-- Rebuild: returns the next customers with stored entitlements after $1, at most $2, of app $3 and with the name $4
-- (nulls: all).
SELECT v.customer_id FROM ledger.current_entitlements v
WHERE v.customer_id > $1::bigint
  AND ($3::text IS NULL OR v.app_id = (SELECT a.app_id FROM ledger.app a WHERE a.bundle_id = $3::text))
  AND ($4::text IS NULL OR v.customer_id IN (
        SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c WHERE c.name = $4::text))
ORDER BY v.customer_id LIMIT $2::int
