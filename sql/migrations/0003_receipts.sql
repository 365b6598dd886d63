-- Receipts as devices sent them, and the narrow hot table of when to ask Apple next.

-- app_id has no foreign key. With one, each stored receipt would lock the one row of its app. PostgreSQL writes several
-- lockers of a row into a list (a multixact) and makes a new list for each further locker, which costs parallel writers
-- time. Intake takes the id from the app that it found.
CREATE TABLE ledger.receipt (
    receipt_id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id               int NOT NULL,
    digest               bytea NOT NULL,
    data                 bytea NOT NULL,
    latest_receipt       bytea,
    environment          ledger.environment,
    receipt_created_at   timestamptz,
    outcome              ledger.outcome,
    reason               text,
    rejections           smallint NOT NULL DEFAULT 0,
    rejected_since       timestamptz,
    equal_empty_answers  smallint NOT NULL DEFAULT 0,
    observation_id       bigint,
    observed_at          timestamptz,
    meaning              bytea,
    received_at          timestamptz NOT NULL DEFAULT now(),
    asked_at             timestamptz,
    verified_at          timestamptz,
    first_verified_at    timestamptz,
    erased_at            timestamptz,
    settled_token        bigint NOT NULL DEFAULT 0,
    CONSTRAINT receipt_digest_unique UNIQUE (app_id, digest),
    CONSTRAINT receipt_digest_is_sha256 CHECK (length(digest) = 32),
    CONSTRAINT receipt_rejection_has_start CHECK ((rejections = 0) = (rejected_since IS NULL)),
    CONSTRAINT receipt_verified_is_asked CHECK (verified_at IS NULL OR asked_at IS NOT NULL)
) WITH (
    fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.1);
-- Receipts do not compress, so an attempt to compress them is lost time. CREATE TABLE sets no storage before
-- PostgreSQL 16.
CREATE INDEX receipt_of_app ON ledger.receipt (app_id, receipt_id);
ALTER TABLE ledger.receipt ALTER COLUMN data SET STORAGE EXTERNAL, ALTER COLUMN latest_receipt SET STORAGE EXTERNAL;
COMMENT ON TABLE ledger.receipt IS 'Every receipt that a device sent, once for each app and content';
COMMENT ON COLUMN ledger.receipt.digest IS 'SHA-256 of data';
COMMENT ON COLUMN ledger.receipt.data IS 'The receipt as the device sent it, without Base64; empty once erased';
COMMENT ON COLUMN ledger.receipt.latest_receipt IS
    'The newest receipt that Apple returned for it; a check sends this one, and data at every second attempt';
COMMENT ON COLUMN ledger.receipt.receipt_created_at IS 'Apple''s receipt_creation_date; the newest receipt polls';
COMMENT ON COLUMN ledger.receipt.outcome IS 'Of the last answer; null: Apple was not asked yet';
COMMENT ON COLUMN ledger.receipt.reason IS 'Why the last answer was not verified';
COMMENT ON COLUMN ledger.receipt.rejections IS 'Refusals in a row that count against the receipt, since rejected_since';
COMMENT ON COLUMN ledger.receipt.equal_empty_answers IS 'Verified answers in a row that held nothing';
COMMENT ON COLUMN ledger.receipt.observation_id IS 'The last observation, which was recorded at observed_at';
COMMENT ON COLUMN ledger.receipt.meaning IS 'The meaning of the last observation; an equal answer only moves its end';
COMMENT ON COLUMN ledger.receipt.asked_at IS 'When the last settled answer came, by our clock';
COMMENT ON COLUMN ledger.receipt.verified_at IS 'When the last verified answer came, by our clock';
COMMENT ON COLUMN ledger.receipt.first_verified_at IS
    'When the first verified answer was settled: provisional entitlements of the receipt ended then';
COMMENT ON COLUMN ledger.receipt.erased_at IS
    'When its bytes were erased; the row stays, because observations refer to it';
COMMENT ON COLUMN ledger.receipt.settled_token IS
    'The lease token of the last settlement: an answer that is sent again changes nothing';

CREATE SEQUENCE ledger.lease_token_seq AS bigint;
COMMENT ON SEQUENCE ledger.lease_token_seq IS
    'Numbers claims. A token never repeats, so that a repeated answer is recognised';

CREATE TYPE ledger.lane AS ENUM ('new', 'expiring', 'retry', 'import', 'sweep', 'quarantine');
COMMENT ON TYPE ledger.lane IS
    'A queue within an app, in order of urgency. new: never verified; expiring: access may change at or soon after '
    'the answer; retry: Apple tries to charge; import: never verified, no customer waits; sweep: the rest; '
    'quarantine: its workers crashed';

CREATE TABLE ledger.poll_schedule (
    receipt_id         bigint PRIMARY KEY REFERENCES ledger.receipt ON DELETE CASCADE,
    app_id             int NOT NULL,
    lane               ledger.lane NOT NULL,
    due_at             timestamptz NOT NULL,
    scheduled_for      timestamptz NOT NULL,
    want_at            timestamptz,
    lease_token        bigint NOT NULL DEFAULT 0,
    leased_by          int,
    attempts           smallint NOT NULL DEFAULT 0,
    crashes            smallint NOT NULL DEFAULT 0,
    backs_off          boolean NOT NULL DEFAULT false,
    confirmed_as_of    timestamptz,
    confirmed_at       timestamptz,
    fingerprint        bytea,
    meaning            bytea,
    polled             text,
    equal_until        timestamptz,
    CONSTRAINT poll_schedule_fingerprint_has_plan CHECK
        (fingerprint IS NULL OR num_nulls(meaning, polled, equal_until, confirmed_as_of) = 0),
    CONSTRAINT poll_schedule_confirmed_has_both_clocks CHECK ((confirmed_as_of IS NULL) = (confirmed_at IS NULL))
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX poll_schedule_due ON ledger.poll_schedule (app_id, lane, due_at);
-- Imported receipts stand in the order of their expiry; this finds the one that waited longest.
CREATE INDEX poll_schedule_imported ON ledger.poll_schedule (app_id, scheduled_for) WHERE lane = 'import';
COMMENT ON TABLE ledger.poll_schedule IS
    'When to ask Apple about which receipt. A receipt that nothing needs has no row. A claim moves due_at to the '
    'end of its lease, so a crashed worker''s receipts come due by themselves';
COMMENT ON COLUMN ledger.poll_schedule.lane IS 'The queue in which the receipt waits for its check';
COMMENT ON COLUMN ledger.poll_schedule.due_at IS
    'When a worker may claim it, or when the lease ends; in the lane import the receipt''s priority '
    '(ledger.import_priority), which is no time of day';
COMMENT ON COLUMN ledger.poll_schedule.scheduled_for IS 'When the check was due before a claim moved due_at';
COMMENT ON COLUMN ledger.poll_schedule.want_at IS
    'By when a caller wants the next check, if the wish came while the receipt was leased; the end of the lease '
    'honours it';
COMMENT ON COLUMN ledger.poll_schedule.lease_token IS
    'The token of the last claim; only its holder may release the receipt';
COMMENT ON COLUMN ledger.poll_schedule.leased_by IS 'The worker that holds the lease; null: none';
COMMENT ON COLUMN ledger.poll_schedule.attempts IS 'Calls in a row that brought no verdict';
COMMENT ON COLUMN ledger.poll_schedule.crashes IS 'Leases in a row that ended without a word from their worker';
COMMENT ON COLUMN ledger.poll_schedule.backs_off IS
    'The last answer vouched for nothing, so due_at follows the back-off and may be later than the next check that '
    'the receipt polls for';
COMMENT ON COLUMN ledger.poll_schedule.confirmed_as_of IS
    'Apple''s clock of the newest answer that said what the last observation says. It counts for everything that '
    'the receipt polls, and for that observation: ledger.as_of and its siblings';
COMMENT ON COLUMN ledger.poll_schedule.confirmed_at IS 'When that answer came, by our clock';
COMMENT ON COLUMN ledger.poll_schedule.fingerprint IS
    'Of the last verified answer without its clocks, and of the rules by which it was read. It is set only if that '
    'answer was the last word on everything that the receipt polls and holds; another answer about that clears it; '
    'null: the next answer is read in full';
COMMENT ON COLUMN ledger.poll_schedule.meaning IS
    'The fingerprint of what that answer means: an answer may say the same in other bytes';
COMMENT ON COLUMN ledger.poll_schedule.polled IS
    'What the schedule needs to know of everything that the receipt polls, as of the fingerprinted answer. '
    'PolledContents in Swift reads and writes it';
COMMENT ON COLUMN ledger.poll_schedule.equal_until IS
    'When time alone next changes something of that; from then on an equal answer is read in full';

CREATE FUNCTION ledger.can_poll(r ledger.receipt, s ledger.poll_schedule)
RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT r.verified_at IS NOT NULL AND r.rejections = 0 AND r.erased_at IS NULL
       AND s.lane IS DISTINCT FROM 'quarantine'
       AND COALESCE(s.attempts - (s.leased_by IS NOT NULL)::int, 0) < 5
$$;
COMMENT ON FUNCTION ledger.can_poll IS
    'Whether a receipt may ask about what it holds: Apple vouched for it, did not refuse it since and answered one '
    'of the last five calls that ended, no worker crashes on it, and it is not erased. Swift has the same five as '
    'SettlementRun.fruitlessAttemptsMax';

CREATE FUNCTION ledger.import_priority(expires_at timestamptz, at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT timestamptz '1900-01-01 00:00:00Z' + CASE
        WHEN expires_at IS NULL THEN interval '10000 days'
        WHEN expires_at < at - interval '65 days'
            THEN interval '10001 days' + LEAST(at - expires_at, interval '10000 days')
        WHEN expires_at < at THEN at - expires_at
        ELSE LEAST(expires_at - at, interval '9999 days') END
$$;
COMMENT ON FUNCTION ledger.import_priority IS
    'Where an imported receipt stands in its line: the nearest expiry first, then unknown expiries, last those that '
    'lapsed longer ago than Apple tries to charge (60 days and some). The result lies before 1970, so the receipt '
    'is always due';
