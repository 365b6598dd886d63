-- Lets one catalog be applied at a time to app $1 and tells its key.
SELECT app_id FROM ledger.app WHERE bundle_id = $1::text FOR NO KEY UPDATE
