-- Ends the API key $1.
UPDATE ledger.api_key k SET revoked_at = COALESCE(revoked_at, now()) WHERE key_id = $1::int
RETURNING key_id, (SELECT a.bundle_id FROM ledger.app a WHERE a.app_id = k.app_id) AS bundle_id
