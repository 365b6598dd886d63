-- Returns the running session with digest $1, if its key still belongs to an administrator of every app.
SELECT s.key_id
FROM ledger.admin_session s JOIN ledger.api_key k USING (key_id)
WHERE s.digest = $1::bytea AND s.expires_at > now() AND k.revoked_at IS NULL AND k.scope = 'admin' AND k.app_id IS NULL
