-- Stores a new session of the admin page (digest $1, key $2, for $3 seconds) and deletes ended ones.
WITH ended AS (
    DELETE FROM ledger.admin_session WHERE expires_at <= now()
)
INSERT INTO ledger.admin_session (digest, key_id, expires_at)
VALUES ($1::bytea, $2::int, now() + make_interval(secs => $3::float8))
RETURNING key_id
