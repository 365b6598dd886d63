-- Stores the digest of a new API key: digest $1, scope $2, bundle $3 (null: every app), requests a second $4, burst $5.
INSERT INTO ledger.api_key (digest, scope, app_id, rate, burst)
SELECT $1::bytea, $2::text::ledger.scope, (SELECT app_id FROM ledger.app WHERE bundle_id = $3::text), $4::float8, $5::float8
WHERE $3::text IS NULL OR EXISTS (SELECT FROM ledger.app WHERE bundle_id = $3::text)
RETURNING key_id
