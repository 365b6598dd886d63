-- Worker: locks and returns at most $1 customers whose stored entitlements are outdated; skips those that another
-- transaction holds.
SELECT c.customer_id FROM ledger.customer c
WHERE c.customer_id IN (
    SELECT v.customer_id
    FROM ledger.app a
    CROSS JOIN LATERAL (
        SELECT v.customer_id FROM ledger.current_entitlements v
        WHERE v.app_id = a.app_id AND v.catalog_changed_at < a.catalog_changed_at
        ORDER BY v.catalog_changed_at LIMIT $1::int) v
    LIMIT $1::int)
ORDER BY c.customer_id FOR NO KEY UPDATE SKIP LOCKED
