-- Returns the app whose notifications arrive at the address with the secret of digest $1.
SELECT app_id, bundle_id FROM ledger.app WHERE notification_digest = $1::bytea
