-- Locks migrations, so that one runs at a time, and creates the table that records them.
SELECT pg_advisory_xact_lock(hashtext('perennial.migrate'));
CREATE SCHEMA IF NOT EXISTS ledger;
CREATE TABLE IF NOT EXISTS ledger.migration (
    number      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    digest      bytea NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
);
