-- Who changed what.
CREATE TABLE ledger.audit (
    audit_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    happened_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    key_id         int REFERENCES ledger.api_key,
    os_user        text,
    action         text NOT NULL,
    app_id         int REFERENCES ledger.app,
    customer_id    bigint,
    receipt_id     bigint,
    decided_about  bigint[],
    detail         jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT audit_names_one_actor
        CHECK (num_nonnulls(key_id, os_user) = 1 OR action = 'feed.renewed' AND num_nonnulls(key_id, os_user) = 0)
);
CREATE INDEX audit_of_app ON ledger.audit (app_id, audit_id);
-- The audit has a row per upload, and an erasure reads none of those.
CREATE INDEX audit_decided_about ON ledger.audit USING gin (decided_about) WHERE decided_about IS NOT NULL;
COMMENT ON TABLE ledger.audit IS
    'Every write by a person or an API key, except a key''s orders and acknowledgements, which order_change and delivery '
    'have; stored with the write itself where that is one transaction. It names '
    'customers by number, so that an erasure reaches it, and holds neither secrets nor receipts';
COMMENT ON COLUMN ledger.audit.key_id IS
    'The API key that acted; null: a user of the operating system, or the database itself';
COMMENT ON COLUMN ledger.audit.os_user IS 'The user of the operating system that acted';
COMMENT ON COLUMN ledger.audit.decided_about IS
    'Every customer that a manual decision is about, because its reason may speak of each; null: no decision about '
    'customers';
COMMENT ON COLUMN ledger.audit.detail IS
    'What was done; for a decision also who decided and why, until one of those customers is erased';
