-- Rebuild: returns where something else is stored about customers ($1) than their sources give from now on.
SELECT d.customer_id, a.bundle_id, c.name, d.entitlement, d.stored, d.computed
FROM ledger.entitlement_differences($1::bigint[]) d
JOIN ledger.customer c USING (customer_id)
JOIN ledger.app a USING (app_id)
ORDER BY d.customer_id, d.entitlement COLLATE "C"
