-- Stores a notification of app $1 that pulls nothing ($2 version, $3 kind, $4 subkind, $5 environment, $6 original
-- transaction id, $7 effect, $8 body).
INSERT INTO ledger.notification (
    app_id, received_at, version, kind, subkind, environment, original_transaction_id, effect, body)
VALUES ($1::int, now(), $2::smallint, $3::text, $4::text, $5::text::ledger.environment, $6::text, $7::text, $8::text::json)
