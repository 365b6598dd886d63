-- Gives the app with bundle $1 the sealed secret $2 (and $3 as the previous one; null: the present one), and ends its
-- pause.
WITH changed AS (
    UPDATE ledger.app
    SET sealed_previous_secret = COALESCE($3::bytea, sealed_secret), sealed_secret = $2::bytea
    WHERE bundle_id = $1::text
    RETURNING app_id
)
UPDATE ledger.app_budget b SET paused_until = '-infinity', paused_because = NULL
FROM changed c WHERE b.app_id = c.app_id
RETURNING b.app_id
