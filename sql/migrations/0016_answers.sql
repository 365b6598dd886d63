-- Who changed what, and how much an API key may ask.

-- Every write by a person or a key, written with the write itself where that is one transaction. Customers are named by
-- their number only, so that what is forgotten about a customer is forgotten here too. Never a secret, never a receipt.
CREATE TABLE ledger.audit (
    audit_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    happened_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    key_id       int REFERENCES ledger.api_key,
    os_user      text,
    action       text NOT NULL,
    app_id       int REFERENCES ledger.app,
    customer_id  bigint,
    receipt_id   bigint,
    detail       jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT audit_names_one_actor CHECK (num_nonnulls(key_id, os_user) = 1)
);
CREATE INDEX audit_of_app ON ledger.audit (app_id, audit_id);

CREATE VIEW perennial.audit_log AS
SELECT t.audit_id, t.happened_at, COALESCE('key ' || t.key_id, 'user ' || t.os_user) AS actor, t.action, a.bundle_id,
       c.name AS customer, t.receipt_id, t.detail
FROM ledger.audit t
LEFT JOIN ledger.app a ON a.app_id = t.app_id
LEFT JOIN ledger.customer c ON c.customer_id = t.customer_id;
COMMENT ON COLUMN perennial.audit_log.actor IS 'An API key by its number, or a user of the operating system';

-- Requests a second and at once; a rate of 0 means unlimited.
ALTER TABLE ledger.api_key
    ADD COLUMN rate double precision NOT NULL DEFAULT 20000,
    ADD COLUMN burst double precision NOT NULL DEFAULT 40000,
    ADD CONSTRAINT api_key_rate_is_sane CHECK (rate >= 0 AND burst >= 1);
