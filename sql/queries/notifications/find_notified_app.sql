-- Returns the app whose notifications arrive at the address with the secret of digest $1, and the time.
SELECT app_id, bundle_id, apple_app_id, sandbox_allowed, k.app_id IS NOT NULL AS has_key, clock_timestamp() AS now
FROM ledger.app LEFT JOIN ledger.server_key k USING (app_id) WHERE notification_digest = $1::bytea
