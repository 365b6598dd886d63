-- Gives the app with bundle $1 the offer key $2 of issuer $3 (null: unknown), sealed as $4, in place of an earlier one.
INSERT INTO ledger.offer_key (app_id, key_id, issuer_id, sealed_key)
SELECT a.app_id, $2::text, $3::text, $4::bytea FROM ledger.app a WHERE a.bundle_id = $1::text
ON CONFLICT (app_id) DO UPDATE
SET key_id = EXCLUDED.key_id, issuer_id = EXCLUDED.issuer_id, sealed_key = EXCLUDED.sealed_key, stored_at = now()
RETURNING app_id
