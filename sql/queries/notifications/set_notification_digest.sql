-- Accepts notifications of the app with bundle $1 only at the address with the secret of digest $2 (null: nowhere).
UPDATE ledger.app SET notification_digest = $2::bytea WHERE bundle_id = $1::text RETURNING app_id
