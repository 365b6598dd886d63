-- Outdates what is stored about customers ($1): lookups compute it until a worker renews it.
UPDATE ledger.current_entitlements v SET catalog_changed_at = '-infinity' WHERE v.customer_id = ANY($1::bigint[])
