-- The App Store Server API: its keys and budgets, uploads without receipts, and the chains of signed texts.
ALTER TABLE ledger.app
    ADD COLUMN verifier      text NOT NULL DEFAULT 'verify_receipt',
    ADD COLUMN apple_app_id  bigint,
    ADD CONSTRAINT app_verifier_known CHECK (verifier IN ('verify_receipt', 'server_api')),
    ADD CONSTRAINT app_apple_id_is_a_number_from_one CHECK (apple_app_id >= 1);
COMMENT ON COLUMN ledger.app.verifier IS
    'Who is asked about receipts: verify_receipt or server_api. Uploads without receipts always ask the Server API';
COMMENT ON COLUMN ledger.app.apple_app_id IS
    'Apple''s number of the app (appAppleId); production texts that name another one are refused; null: not compared';

CREATE TABLE ledger.server_key (
    app_id      int PRIMARY KEY REFERENCES ledger.app,
    key_id      text NOT NULL,
    issuer_id   text NOT NULL,
    sealed_key  bytea NOT NULL,
    stored_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT server_key_ids_are_short CHECK (key_id ~ '^[0-9A-Za-z_-]{1,64}$' AND issuer_id ~ '^[0-9A-Za-z_-]{1,64}$')
);
COMMENT ON TABLE ledger.server_key IS
    'The In-App Purchase keys of App Store Connect that sign requests to the Server API, at most one for each app';
COMMENT ON COLUMN ledger.server_key.key_id IS 'The key''s id in App Store Connect';
COMMENT ON COLUMN ledger.server_key.issuer_id IS 'The issuer of the team''s keys';
COMMENT ON COLUMN ledger.server_key.sealed_key IS 'The private key, encrypted with the master key';

CREATE TYPE ledger.receipt_form AS ENUM ('receipt', 'signed_transaction', 'transaction_id');
COMMENT ON TYPE ledger.receipt_form IS
    'What a device sent: receipt, a receipt; signed_transaction, a signed transaction of StoreKit 2; transaction_id, '
    'the id of a transaction alone';

ALTER TABLE ledger.receipt
    ADD COLUMN form              ledger.receipt_form NOT NULL DEFAULT 'receipt',
    ADD COLUMN vouched           boolean NOT NULL DEFAULT false,
    ADD COLUMN transaction_id    text,
    ADD COLUMN history_revision  text,
    ADD COLUMN history_goes_on   boolean NOT NULL DEFAULT false,
    ADD COLUMN reads_whole       boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT receipt_names_a_transaction CHECK (form = 'receipt' OR transaction_id IS NOT NULL OR erased_at IS NOT NULL),
    ADD CONSTRAINT receipt_history_goes_on_somewhere CHECK (NOT history_goes_on OR history_revision IS NOT NULL);
-- Until now verifyReceipt alone was asked.
UPDATE ledger.receipt SET vouched = true WHERE first_verified_at IS NOT NULL;
COMMENT ON COLUMN ledger.receipt.digest IS
    'SHA-256 of data where it is a receipt; else of the form, the environment where it is known, and the transaction id, '
    'because one transaction is signed again and again';
COMMENT ON COLUMN ledger.receipt.data IS
    'What the device sent: a receipt without Base64, a signed transaction in compact form, or an id; empty once erased';
COMMENT ON COLUMN ledger.receipt.vouched IS
    'Of a receipt: whether verifyReceipt vouched for it; without that its transaction id is only a pointer, because the '
    'bytes of a receipt can be edited';
COMMENT ON COLUMN ledger.receipt.transaction_id IS
    'A transaction id by which the Server API can be asked about it; null: none is known';
COMMENT ON COLUMN ledger.receipt.history_revision IS
    'Where the next read of the transaction history begins; null: the Server API was not read from the start';
COMMENT ON COLUMN ledger.receipt.history_goes_on IS
    'Whether the next check reads the history on: the last one ended at its limit of pages, or a one-time purchase waits '
    'for a check, about which statuses say nothing';
COMMENT ON COLUMN ledger.receipt.reads_whole IS
    'Whether the next check has to read everything that Apple knows, because a smaller answer or a signal did not join '
    'what is stored';

CREATE TABLE ledger.call_budget (
    app_id        int NOT NULL REFERENCES ledger.app,
    environment   ledger.environment NOT NULL,
    endpoint      text NOT NULL,
    tokens        double precision NOT NULL,
    refilled_at   timestamptz NOT NULL,
    paused_until  timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (app_id, environment, endpoint),
    CONSTRAINT call_budget_endpoint_known
        CHECK (endpoint IN ('transactions', 'notifications', 'refunds', 'extensions', 'single')),
    CONSTRAINT call_budget_tokens_are_not_negative CHECK (tokens >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE ledger.call_budget IS
    'The budgets of calls to the Server API (token buckets), because Apple limits each kind of call of an app on its own. '
    'ledger.app_budget paces the checks';
COMMENT ON COLUMN ledger.call_budget.endpoint IS
    'A kind of call: transactions (statuses, history, one transaction), notifications (their history), refunds (refund '
    'history and orders), extensions (extend one, account token), single (extend all, test notification)';
COMMENT ON COLUMN ledger.call_budget.tokens IS 'Calls that could be made at refilled_at';
COMMENT ON COLUMN ledger.call_budget.paused_until IS 'No call is made until then: Apple asked for it with Retry-After';

CREATE TABLE ledger.signer_chain (
    chain_id  int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    header    text NOT NULL,
    digest    bytea NOT NULL,
    CONSTRAINT signer_chain_digest_unique UNIQUE (digest),
    CONSTRAINT signer_chain_digest_is_sha256 CHECK (length(digest) = 32)
);
COMMENT ON TABLE ledger.signer_chain IS
    'The headers of signed texts, each once: algorithm and certificates. A stored text has the number of its header in '
    'place of the header';
COMMENT ON COLUMN ledger.signer_chain.header IS 'The header in base64url, as it was signed';
COMMENT ON COLUMN ledger.signer_chain.digest IS 'SHA-256 of header';
