-- Locks the catalog of app $1, so that one catalog is applied at a time, and returns the app's key.
SELECT app_id FROM ledger.app WHERE bundle_id = $1::text FOR NO KEY UPDATE
