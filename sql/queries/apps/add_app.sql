-- Registers an app with its budget: bundle $1, name $2, sealed secrets $3 and $4, sandbox $5, rate $6, burst $7.
WITH new AS (
    INSERT INTO ledger.app (bundle_id, name, sealed_secret, sealed_previous_secret, sandbox_allowed)
    VALUES ($1::text, $2::text, $3::bytea, $4::bytea, $5::boolean)
    RETURNING app_id
)
INSERT INTO ledger.app_budget (app_id, rate, burst, tokens)
SELECT app_id, $6::float8, $7::float8, $7::float8 FROM new
RETURNING app_id
