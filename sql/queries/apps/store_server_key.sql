-- Gives the app with bundle $1 the server key $2 of issuer $3, sealed as $4, in place of an earlier one, and ends the pauses because
-- Apple refused that one.
WITH stored AS (
    INSERT INTO ledger.server_key AS k (app_id, key_id, issuer_id, sealed_key)
    SELECT a.app_id, $2::text, $3::text, $4::bytea FROM ledger.app a WHERE a.bundle_id = $1::text
    ON CONFLICT (app_id) DO UPDATE
    SET key_id = EXCLUDED.key_id, issuer_id = EXCLUDED.issuer_id, sealed_key = EXCLUDED.sealed_key, stored_at = now()
    RETURNING k.app_id
), resumed AS (
    UPDATE ledger.call_budget b SET paused_until = '-infinity', refused_because = NULL
    FROM stored s WHERE b.app_id = s.app_id AND b.refused_because IS NOT NULL
)
SELECT s.app_id FROM stored s
