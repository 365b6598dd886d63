-- Ends the session with digest $1.
DELETE FROM ledger.admin_session WHERE digest = $1::bytea
RETURNING key_id
