-- Returns every API key without its secret parts.
SELECT k.key_id, k.scope::text AS scope, a.bundle_id, k.rate, k.burst, k.created_at, k.revoked_at
FROM ledger.api_key k LEFT JOIN ledger.app a USING (app_id) ORDER BY k.key_id
