-- Imports of millions: how far each file came, what its lines promise until Apple is asked, and whose turn is first.

-- A file is known by its name, its size and its first and last megabyte. A part is marked in the transaction that stores
-- it, and parts are stored side by side: what is stored without a gap from the start is the range that holds line 1.
CREATE TABLE ledger.import (
    import_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    file_name    text NOT NULL,
    file_bytes   bigint NOT NULL,
    edges        bytea NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT now(),
    stored_lines int8multirange NOT NULL DEFAULT '{}',
    stored_bytes int8multirange NOT NULL DEFAULT '{}',
    bad_lines    bigint NOT NULL DEFAULT 0,
    CONSTRAINT import_file_unique UNIQUE (file_name, file_bytes, edges),
    CONSTRAINT import_edges_are_sha256 CHECK (length(edges) = 32),
    CONSTRAINT import_stores_what_there_is
        CHECK (stored_bytes <@ int8range(0, file_bytes, '[]') AND bad_lines >= 0)
) WITH (fillfactor = 50);

-- What the operator said a customer has until Apple is asked about the receipt. Rows are only added: of a customer, receipt
-- and product the newest counts. since is when it was first said, from which the longest promise is measured.
CREATE TABLE ledger.provisional (
    customer_id  bigint NOT NULL REFERENCES ledger.customer ON DELETE CASCADE,
    receipt_id   bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    product_id   text NOT NULL,
    said_at      timestamptz NOT NULL,
    since        timestamptz NOT NULL,
    until        timestamptz NOT NULL,
    environment  ledger.environment NOT NULL,
    PRIMARY KEY (customer_id, receipt_id, product_id, said_at),
    CONSTRAINT provisional_product_is_short CHECK (product_id <> '' AND length(product_id) <= 255),
    CONSTRAINT provisional_is_for_90_days CHECK (since <= said_at AND until BETWEEN since AND since + interval '90 days')
);
CREATE INDEX provisional_of_receipt ON ledger.provisional (receipt_id);

ALTER TABLE ledger.receipt ADD COLUMN first_verified_at timestamptz;
COMMENT ON COLUMN ledger.receipt.first_verified_at IS
    'When the first verified answer was settled: what was promised provisionally ended then';

-- The app of a receipt and of a customer is not checked by the database any more: the check locks the app's one row for
-- every row stored, which writers side by side pay for with a list of lockers. Apps are never deleted, and intake takes
-- the id from the app that it found.
ALTER TABLE ledger.receipt DROP CONSTRAINT receipt_app_id_fkey;
ALTER TABLE ledger.customer DROP CONSTRAINT customer_app_id_fkey;

COMMENT ON COLUMN ledger.poll_schedule.due_at IS
    'When it may be claimed, or when the lease ends; in lane 3 the receipt''s turn (ledger.import_turn), which is no time of day';

-- Where an imported receipt stands in its line: nearest expiry first, then those whose expiry nobody can read, last those
-- that lapsed longer ago than Apple tries to charge (60 days and some). All of it lies before 1970, so it is always due.
CREATE FUNCTION ledger.import_turn(expires_at timestamptz, at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT timestamptz '1900-01-01 00:00:00Z' + CASE
        WHEN expires_at IS NULL THEN interval '10000 days'
        WHEN expires_at < at - interval '65 days' THEN interval '10001 days' + LEAST(at - expires_at, interval '10000 days')
        WHEN expires_at < at THEN at - expires_at
        ELSE LEAST(expires_at - at, interval '9999 days') END
$$;

-- What the operator said of receipts that Apple had not vouched for at known_at; once it had, nothing of it counts.
CREATE FUNCTION ledger.provisional_source(
    app_id int, customer_id bigint, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment)
LANGUAGE sql STABLE AS $$
    SELECT g.entitlement, said.until > valid_at, said.until, said.product_id,
           CASE WHEN said.until > valid_at THEN 'active' ELSE 'expired' END,
           CASE WHEN said.until <= valid_at THEN 'unknown' END,
           said.environment
    FROM (
        SELECT DISTINCT ON (p.receipt_id, p.product_id) p.*
        FROM ledger.provisional p
        WHERE p.customer_id = provisional_source.customer_id AND p.said_at <= known_at
        ORDER BY p.receipt_id, p.product_id, p.said_at DESC) said
    JOIN ledger.receipt r USING (receipt_id)
    CROSS JOIN LATERAL ledger.grants(r.app_id, said.product_id, valid_at, known_at) g
    WHERE r.app_id = provisional_source.app_id AND said.since <= valid_at
      AND COALESCE(r.first_verified_at > known_at, true)
$$;

-- One row per entitlement: verified beats provisional, production beats sandbox, what grants beats what does not, the
-- latest end wins.
-- Runs as its owner, so that whoever may read the schema perennial needs no right on the ledger.
CREATE OR REPLACE FUNCTION ledger.entitlements(
    app_id int, customer_id bigint, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT ON (e.entitlement)
        e.entitlement, e.granted, CASE WHEN e.granted THEN e.until END, e.product_id, e.state, e.reason, e.environment,
        CASE WHEN e.is_verified THEN 'verified' ELSE 'provisional' END, e.as_of, e.checked_at
    FROM (
        SELECT true AS is_verified, s.* FROM ledger.entitlement_source(app_id, customer_id, valid_at, known_at) s
        UNION ALL
        SELECT false, s.*, NULL, NULL FROM ledger.provisional_source(app_id, customer_id, valid_at, known_at) s) e
    ORDER BY e.entitlement, e.is_verified DESC, e.environment, e.granted DESC, e.until DESC NULLS FIRST,
             e.checked_at DESC, e.product_id
$$;
