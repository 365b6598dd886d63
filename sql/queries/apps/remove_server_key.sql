-- Takes the server key of the app with bundle $1 away.
DELETE FROM ledger.server_key k USING ledger.app a
WHERE a.app_id = k.app_id AND a.bundle_id = $1::text
RETURNING k.key_id
