-- Registers an app with its budget: bundle $1, name $2, sealed secrets $3 and $4, sandbox $5, rate $6, burst $7. An app that
-- was removed is registered again. Returns no row where the app is registered.
WITH new AS (
    INSERT INTO ledger.app AS a (bundle_id, name, sealed_secret, sealed_previous_secret, sandbox_allowed)
    VALUES ($1::text, $2::text, $3::bytea, $4::bytea, $5::boolean)
    ON CONFLICT ON CONSTRAINT app_bundle_id_unique DO UPDATE
    SET name = EXCLUDED.name, sealed_secret = EXCLUDED.sealed_secret,
        sealed_previous_secret = EXCLUDED.sealed_previous_secret, sandbox_allowed = EXCLUDED.sandbox_allowed,
        removed_at = NULL
    WHERE a.removed_at IS NOT NULL
    RETURNING app_id
)
INSERT INTO ledger.app_budget AS b (app_id, rate, burst, tokens)
SELECT app_id, $6::float8, $7::float8, $7::float8 FROM new
ON CONFLICT (app_id) DO UPDATE SET rate = EXCLUDED.rate, burst = EXCLUDED.burst, tokens = EXCLUDED.tokens
RETURNING b.app_id
