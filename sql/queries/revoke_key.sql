-- Ends the API key $1.
UPDATE ledger.api_key SET revoked_at = COALESCE(revoked_at, now()) WHERE key_id = $1::int RETURNING key_id
