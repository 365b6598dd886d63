-- Returns the valid API key with digest $1.
SELECT k.key_id, k.scope::text AS scope, a.bundle_id, k.rate, k.burst
FROM ledger.api_key k LEFT JOIN ledger.app a USING (app_id)
WHERE k.digest = $1::bytea AND k.revoked_at IS NULL
