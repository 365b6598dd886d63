-- Locks the catalog of app $1, so that one catalog is applied at a time, and returns the app's key and the instant of
-- the last change.
SELECT app_id, catalog_changed_at FROM ledger.app WHERE bundle_id = $1::text FOR NO KEY UPDATE
