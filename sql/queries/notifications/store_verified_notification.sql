-- Stores a verified notification of app $1 ($2 kind, $3 subkind, $4 Apple's id, $5 environment, $6 original transaction
-- id, $7 when it was signed, $8 its texts, $9 whether it holds facts to apply, $10 transaction id, $11 how it came, $12
-- account token). A repetition does nothing; one that was stored unverified becomes verified.
INSERT INTO ledger.notification AS n (
    app_id, received_at, version, kind, subkind, apple_id, environment, original_transaction_id, signed_at, effect, apply_at,
    texts, transaction_id, source, account_token)
VALUES ($1::int, now(), 2, $2::text, $3::text, $4::text, $5::text::ledger.environment, $6::text, $7::timestamptz,
        CASE WHEN $9::boolean THEN 'received' ELSE 'no_facts' END, CASE WHEN $9::boolean THEN now() END, $8::bytea,
        $10::text, $11::text, $12::text)
ON CONFLICT (app_id, apple_id) DO UPDATE SET
    kind = EXCLUDED.kind, subkind = EXCLUDED.subkind, environment = EXCLUDED.environment,
    original_transaction_id = EXCLUDED.original_transaction_id, signed_at = EXCLUDED.signed_at, effect = EXCLUDED.effect,
    apply_at = EXCLUDED.apply_at, texts = EXCLUDED.texts,
    transaction_id = EXCLUDED.transaction_id, account_token = EXCLUDED.account_token, reason = NULL, check_at = NULL,
    body = NULL
    WHERE n.signed_at IS NULL
RETURNING effect
