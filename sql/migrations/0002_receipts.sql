-- Customers, the receipts that they sent, when to ask Apple about them next, and what Apple answered.

-- The database does not check the app of a customer, as with ledger.receipt.
CREATE TABLE ledger.customer (
    customer_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id       int NOT NULL,
    name         text NOT NULL,
    merged_into  bigint REFERENCES ledger.customer,
    created_at   timestamptz NOT NULL DEFAULT now(),
    erased_at    timestamptz,
    CONSTRAINT customer_name_unique UNIQUE (app_id, name),
    CONSTRAINT customer_name_is_short CHECK (name <> '' AND length(name) <= 255),
    CONSTRAINT customer_is_not_merged_into_itself CHECK (merged_into <> customer_id)
);
-- The admin page searches customers by the beginning of the name.
CREATE INDEX customer_name_prefix ON ledger.customer (app_id, name text_pattern_ops);
CREATE INDEX customer_merged_into ON ledger.customer (merged_into) WHERE merged_into IS NOT NULL;
COMMENT ON TABLE ledger.customer IS 'Customers: the operator''s own user ids in one app';
COMMENT ON COLUMN ledger.customer.merged_into IS 'The customer that this name means now; that one is not merged itself';
COMMENT ON COLUMN ledger.customer.erased_at IS 'When the customer''s data were erased';

CREATE FUNCTION ledger.is_same_customer(one bigint, other bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT one = other
        OR (SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c WHERE c.customer_id = one)
         = (SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c WHERE c.customer_id = other)
$$;
COMMENT ON FUNCTION ledger.is_same_customer IS 'Whether two names are one customer now; null where one of them is null';

CREATE TABLE ledger.customer_merge (
    customer_id  bigint NOT NULL REFERENCES ledger.customer,
    into_id      bigint NOT NULL REFERENCES ledger.customer,
    applies      tstzrange NOT NULL,
    CONSTRAINT customer_merge_says_one_thing EXCLUDE USING gist (customer_id WITH =, applies WITH &&)
);
COMMENT ON TABLE ledger.customer_merge IS
    'When a name meant another customer; outside of these times it has things of its own';

CREATE FUNCTION ledger.customer_at(customer_id bigint, at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(
        (SELECT m.into_id FROM ledger.customer_merge m
         WHERE m.customer_id = customer_at.customer_id AND m.applies @> customer_at.at),
        customer_at.customer_id)
$$;
COMMENT ON FUNCTION ledger.customer_at IS 'The customer whose things a customer''s name meant at an instant';

CREATE FUNCTION ledger.names_under(of_customer bigint) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE meant AS (
            -- What a name meant without a break, from now back.
            SELECT m.customer_id, m.into_id, m.applies
            FROM ledger.customer n
            JOIN ledger.customer c ON c.merged_into = COALESCE(n.merged_into, n.customer_id)
            JOIN ledger.customer_merge m ON m.customer_id = c.customer_id AND upper_inf(m.applies)
            WHERE n.customer_id = of_customer
            UNION ALL
            SELECT m.customer_id, m.into_id, m.applies
            FROM meant t
            JOIN ledger.customer_merge m ON m.customer_id = t.customer_id AND upper(m.applies) = lower(t.applies)
        ), merged AS (
            -- Later ones went along with the customer into whom the name was merged.
            SELECT DISTINCT ON (t.customer_id) t.customer_id, t.into_id FROM meant t ORDER BY t.customer_id, lower(t.applies)
        ), under AS (
            SELECT of_customer AS customer_id
            UNION
            SELECT m.customer_id FROM under u JOIN merged m ON m.into_id = u.customer_id
        )
        SELECT u.customer_id FROM under u ORDER BY u.customer_id);
END $$;
COMMENT ON FUNCTION ledger.names_under IS
    'A customer, with the names that were merged into this one and into those, also where the customer was merged into another '
    'one since';

CREATE TABLE ledger.erased_token (
    app_id  int NOT NULL REFERENCES ledger.app,
    digest  bytea NOT NULL,
    PRIMARY KEY (app_id, digest),
    CONSTRAINT erased_token_digest_is_sha256 CHECK (length(digest) = 32)
);
COMMENT ON TABLE ledger.erased_token IS
    'What must not be stored again: the names and account tokens of erased customers, as SHA-256 of their lower '
    'case. It counts while '
    'no customer has that name';
COMMENT ON COLUMN ledger.erased_token.app_id IS 'The app';
COMMENT ON COLUMN ledger.erased_token.digest IS 'SHA-256 of the name or token in lower case';

CREATE TYPE ledger.outcome AS ENUM ('verified', 'rejected', 'indeterminate', 'none');
COMMENT ON TYPE ledger.outcome IS
    'verified: Apple vouches for the receipt; rejected: Apple refuses to; indeterminate: the call brought no '
    'verdict; none: Apple was not asked, the outage allowance ended. Only verified changes facts';

CREATE TYPE ledger.receipt_form AS ENUM ('receipt', 'signed_transaction', 'transaction_id');
COMMENT ON TYPE ledger.receipt_form IS
    'What a device sent: receipt, a receipt; signed_transaction, a signed transaction of StoreKit 2; transaction_id, '
    'the id of a transaction alone';

-- app_id has no foreign key. With one, each stored receipt would lock the one row of its app. PostgreSQL writes several
-- lockers of a row into a list (a multixact) and makes a new list for each further locker, which costs parallel writers
-- time. Intake takes the id from the app that it found.
CREATE TABLE ledger.receipt (
    receipt_id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id               int NOT NULL,
    digest               bytea NOT NULL,
    form                 ledger.receipt_form NOT NULL DEFAULT 'receipt',
    data                 bytea NOT NULL,
    latest_receipt       bytea,
    transaction_id       text,
    vouched              boolean NOT NULL DEFAULT false,
    history_revision     text,
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
    CONSTRAINT receipt_digest_is_sha256 CHECK (length(digest) = 32),
    CONSTRAINT receipt_rejection_has_start CHECK ((rejections = 0) = (rejected_since IS NULL)),
    CONSTRAINT receipt_verified_is_asked CHECK (verified_at IS NULL OR asked_at IS NOT NULL),
    CONSTRAINT receipt_names_a_transaction CHECK (form = 'receipt' OR transaction_id IS NOT NULL OR erased_at IS NOT NULL)
) WITH (
    fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX receipt_of_app ON ledger.receipt (app_id, receipt_id);
-- After the index above: of two that cost the same, as in an empty table, PostgreSQL takes the newer one.
ALTER TABLE ledger.receipt ADD CONSTRAINT receipt_digest_unique UNIQUE (app_id, digest);
CREATE INDEX receipt_of_transaction ON ledger.receipt (app_id, form, receipt_id) WHERE form <> 'receipt';
COMMENT ON INDEX ledger.receipt_of_transaction IS
    'Finds the receipts of an app that only the Server API can be asked about, when its server key comes or goes';
-- Receipts do not compress, so an attempt to compress them is lost time. CREATE TABLE sets no storage before
-- PostgreSQL 16.
ALTER TABLE ledger.receipt
    ALTER COLUMN data SET STORAGE EXTERNAL,
    ALTER COLUMN latest_receipt SET STORAGE EXTERNAL;
COMMENT ON TABLE ledger.receipt IS 'Every receipt that a device sent, once for each app and content';
COMMENT ON COLUMN ledger.receipt.digest IS
    'SHA-256 of data where it is a receipt; else of the form, the environment where it is known, and the transaction id, '
    'because one transaction is signed again and again';
COMMENT ON COLUMN ledger.receipt.data IS
    'What the device sent: a receipt without Base64, a signed transaction in compact form, or an id; empty once erased';
COMMENT ON COLUMN ledger.receipt.latest_receipt IS
    'The newest receipt that Apple returned for it; a check sends this one, and data at every second attempt';
COMMENT ON COLUMN ledger.receipt.transaction_id IS
    'A transaction id by which the Server API can be asked about it; null: none is known';
COMMENT ON COLUMN ledger.receipt.vouched IS
    'Of a receipt: whether verifyReceipt vouched for it; without that its transaction id is only a pointer, because the '
    'bytes of a receipt can be edited';
COMMENT ON COLUMN ledger.receipt.history_revision IS
    'Where the next read of the transaction history begins; null: the Server API was not read from the start';
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

CREATE TABLE ledger.upload (
    receipt_id        bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    customer_id       bigint NOT NULL REFERENCES ledger.customer,
    uploaded_as       bigint REFERENCES ledger.customer,
    storefront        text,
    price_milliunits  bigint,
    currency          text,
    uploaded_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    imported          boolean NOT NULL,
    settled           boolean NOT NULL DEFAULT false,
    PRIMARY KEY (receipt_id, customer_id)
);
CREATE INDEX upload_of_customer ON ledger.upload (customer_id);
CREATE INDEX upload_uploaded_as ON ledger.upload (uploaded_as) WHERE uploaded_as IS NOT NULL;
COMMENT ON TABLE ledger.upload IS 'Which customer sent which receipt: the newest upload of each pair';
COMMENT ON COLUMN ledger.upload.uploaded_as IS
    'The customer whose upload it was before the name was merged, so that a merge can be undone; null: it never moved';
COMMENT ON COLUMN ledger.upload.storefront IS
    'The storefront that the device saw, with the price below; ledger.stated_price has each';
COMMENT ON COLUMN ledger.upload.price_milliunits IS 'In thousandths of currency';
COMMENT ON COLUMN ledger.upload.imported IS
    'Whether an import brought it; an import never takes a live subscription from its owner';
COMMENT ON COLUMN ledger.upload.settled IS 'Whether a settlement has decided about ownership since the upload';

CREATE TYPE ledger.lane AS ENUM ('new', 'expiring', 'retry', 'import', 'sweep', 'quarantine');
COMMENT ON TYPE ledger.lane IS
    'A queue within an app, in order of urgency. new: never verified; expiring: access may change at or soon after '
    'the answer; retry: Apple tries to charge, or a notification states something; import: never verified, no customer '
    'waits; sweep: the rest; quarantine: its workers crashed';

CREATE SEQUENCE ledger.lease_token_seq AS bigint;
COMMENT ON SEQUENCE ledger.lease_token_seq IS
    'Numbers claims. A token never repeats, so that a repeated answer is recognised';

CREATE TABLE ledger.poll_schedule (
    receipt_id       bigint PRIMARY KEY REFERENCES ledger.receipt ON DELETE CASCADE,
    app_id           int NOT NULL,
    lane             ledger.lane NOT NULL,
    is_sandbox       boolean NOT NULL DEFAULT false,
    due_at           timestamptz NOT NULL,
    scheduled_for    timestamptz NOT NULL,
    want_at          timestamptz,
    follow_ups       smallint NOT NULL DEFAULT 0,
    lease_token      bigint NOT NULL DEFAULT 0,
    leased_by        int,
    attempts         smallint NOT NULL DEFAULT 0,
    crashes          smallint NOT NULL DEFAULT 0,
    backs_off        boolean NOT NULL DEFAULT false,
    confirmed_as_of  timestamptz,
    confirmed_at     timestamptz,
    fingerprint      bytea,
    meaning          bytea,
    polled           text,
    equal_until      timestamptz,
    CONSTRAINT poll_schedule_fingerprint_has_plan CHECK
        (fingerprint IS NULL OR num_nulls(meaning, polled, equal_until, confirmed_as_of) = 0),
    CONSTRAINT poll_schedule_confirmed_has_both_clocks CHECK ((confirmed_as_of IS NULL) = (confirmed_at IS NULL)),
    CONSTRAINT poll_schedule_follow_ups_known CHECK (follow_ups BETWEEN 0 AND 4)
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX poll_schedule_due ON ledger.poll_schedule (app_id, lane, due_at);
-- Imported receipts stand in the order of their expiry; this finds the one that waited longest.
CREATE INDEX poll_schedule_imported ON ledger.poll_schedule (app_id, scheduled_for) WHERE lane = 'import';
-- While production pauses, this finds the sandbox's due receipts behind any number of production's.
CREATE INDEX poll_schedule_sandbox ON ledger.poll_schedule (app_id, lane, due_at) WHERE is_sandbox;
COMMENT ON TABLE ledger.poll_schedule IS
    'When to ask Apple about which receipt. A receipt that nothing needs has no row. A claim moves due_at to the '
    'end of its lease, so a crashed worker''s receipts come due by themselves';
COMMENT ON COLUMN ledger.poll_schedule.lane IS 'The queue in which the receipt waits for its check';
COMMENT ON COLUMN ledger.poll_schedule.is_sandbox IS
    'Whether the check asks the sandbox: by Apple''s word, before that by what the receipt says of itself';
COMMENT ON COLUMN ledger.poll_schedule.due_at IS
    'When a worker may claim it, or when the lease ends; in the lane import the receipt''s priority '
    '(ledger.import_priority), which is no time of day';
COMMENT ON COLUMN ledger.poll_schedule.scheduled_for IS 'When the check was due before a claim moved due_at';
COMMENT ON COLUMN ledger.poll_schedule.want_at IS
    'By when a caller wants the next check, if the wish came while the receipt was leased; the end of the lease '
    'honours it';
COMMENT ON COLUMN ledger.poll_schedule.follow_ups IS
    'How many checks may still show nothing of what a notification states: the wanted one, then one after 1, 5 and 10 '
    'minutes; 0: no notification waits for an answer';
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

CREATE FUNCTION ledger.pulled_lane(s ledger.poll_schedule) RETURNS ledger.lane LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN s.due_at > now() + interval '13 hours' THEN 'retry' ELSE LEAST(s.lane, 'retry') END
$$;
COMMENT ON FUNCTION ledger.pulled_lane IS
    'The lane of a check that a notification brings forward. Many at once take no turn from checks at an end and from new '
    'receipts; a check that is at hand anyway keeps its lane. Swift has the same hours as ScheduleInput.nearHours';

CREATE FUNCTION ledger.could_poll(r ledger.receipt, s ledger.poll_schedule)
RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT ledger.can_poll(r, s)
       AND (r.form = 'receipt' OR EXISTS (
           SELECT FROM ledger.server_key k
           WHERE k.app_id = r.app_id
             AND (r.form <> 'transaction_id'
               OR (k.taken_up < r.receipt_id OR s.leased_by IS NOT NULL OR s.due_at <= now() OR s.backs_off
                   OR s.follow_ups > 0) IS NOT TRUE)))
$$;
COMMENT ON FUNCTION ledger.could_poll IS
    'Whether a receipt may ask about what it holds, so that no receipt polls that by mistake. The bare id of a transaction is '
    'taken up meanwhile while a check of it is due or under way, or workers have yet to come to it after a new server key';

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

CREATE TABLE ledger.import (
    import_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    file_name     text NOT NULL,
    file_bytes    bigint NOT NULL,
    edges         bytea NOT NULL,
    started_at    timestamptz NOT NULL DEFAULT now(),
    read_lines    int8multirange NOT NULL DEFAULT '{}',
    read_bytes    int8multirange NOT NULL DEFAULT '{}',
    bad_lines     int8multirange NOT NULL DEFAULT '{}',
    CONSTRAINT import_file_unique UNIQUE (file_name, file_bytes, edges),
    CONSTRAINT import_edges_are_sha256 CHECK (length(edges) = 32),
    CONSTRAINT import_reads_what_there_is CHECK (read_bytes <@ int8range(0, file_bytes, '[]') AND bad_lines <@ read_lines)
) WITH (fillfactor = 50);
COMMENT ON TABLE ledger.import IS
    'How far each imported file is. The transaction that stores a part marks it; parts are stored side by side. '
    'Name, size, first and last megabyte identify a file';
COMMENT ON COLUMN ledger.import.edges IS 'SHA-256 of the first and the last megabyte';
COMMENT ON COLUMN ledger.import.read_lines IS
    'The lines that are stored or bad; the range that holds line 1 was read without a gap from the start';
COMMENT ON COLUMN ledger.import.read_bytes IS 'The bytes of these lines';
COMMENT ON COLUMN ledger.import.bad_lines IS 'Those of these lines that could not be stored, and are read again';

CREATE TABLE ledger.refusal (
    receipt_id         bigint PRIMARY KEY REFERENCES ledger.receipt ON DELETE CASCADE,
    app_id             int NOT NULL,
    refused_at         timestamptz NOT NULL,
    once_verified      boolean NOT NULL,
    is_canary          boolean NOT NULL DEFAULT true,
    counts             boolean NOT NULL,
    rejections_before  smallint NOT NULL,
    reason             text NOT NULL
);
CREATE INDEX refusal_of_app ON ledger.refusal (app_id, refused_at);
COMMENT ON TABLE ledger.refusal IS
    'Receipts that Apple refused lately, the first refusal of each: for ten minutes, or until the end of an incident';
COMMENT ON COLUMN ledger.refusal.is_canary IS
    'Of a once-verified receipt: whether its last answer was no refusal, and Apple vouched for it lately';
COMMENT ON COLUMN ledger.refusal.counts IS
    'Whether it counts against the receipt; if not, workers ask about the receipt again when the incident ends';
COMMENT ON COLUMN ledger.refusal.rejections_before IS 'The receipt''s rejections before this one';

-- What Apple answered: one row per meaning, in partitions by month, so that old months can be archived.
CREATE SEQUENCE ledger.observation_id_seq AS bigint;

CREATE TABLE ledger.observation (
    observation_id  bigint NOT NULL DEFAULT nextval('ledger.observation_id_seq'),
    receipt_id      bigint NOT NULL,
    app_id          int NOT NULL,
    lease_token     bigint NOT NULL,
    outcome         ledger.outcome NOT NULL,
    status          int,
    reason          text,
    environment     ledger.environment,
    first_as_of     timestamptz NOT NULL,
    last_as_of      timestamptz NOT NULL,
    meaning         bytea NOT NULL,
    body            bytea,
    reduced         boolean NOT NULL DEFAULT false,
    recorded_at     timestamptz NOT NULL,
    PRIMARY KEY (observation_id, recorded_at),
    CONSTRAINT observation_ends_after_it_begins CHECK (first_as_of <= last_as_of)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX observation_of_receipt ON ledger.observation (receipt_id, observation_id);
COMMENT ON TABLE ledger.observation IS
    'What Apple stated about a receipt: one row per meaning, from first_as_of to last_as_of. An equal answer only '
    'moves the end';
COMMENT ON COLUMN ledger.observation.lease_token IS 'The claim that brought the first answer with this meaning';
COMMENT ON COLUMN ledger.observation.status IS 'Apple''s status code; null: the answer had none';
COMMENT ON COLUMN ledger.observation.first_as_of IS 'Apple''s clock of the first answer with this meaning';
COMMENT ON COLUMN ledger.observation.last_as_of IS 'Apple''s clock of the last answer with this meaning';
COMMENT ON COLUMN ledger.observation.meaning IS
    'SHA-256 of what the answer means, without the clocks that differ from answer to answer';
COMMENT ON COLUMN ledger.observation.body IS
    'The first answer with this meaning, compressed; null: there was none to keep';
COMMENT ON COLUMN ledger.observation.reduced IS
    'Whether the signed texts in body are reduced to their claims, without signatures and certificates, because they are old';
ALTER SEQUENCE ledger.observation_id_seq OWNED BY ledger.observation.observation_id;

CREATE TABLE ledger.observation_other PARTITION OF ledger.observation DEFAULT;
COMMENT ON TABLE ledger.observation_other IS 'Observations of a month whose partition was not made in time';

CREATE FUNCTION ledger.add_observation_month(at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first date := date_trunc('month', at AT TIME ZONE 'UTC')::date;
    name  text := 'observation_' || to_char(first, 'YYYY_MM');
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('ledger.add_observation_month'));
    IF to_regclass('ledger.' || quote_ident(name)) IS NULL AND NOT EXISTS (
        SELECT FROM ledger.observation_other o
        WHERE o.recorded_at >= first::timestamp AT TIME ZONE 'UTC'
          AND o.recorded_at < (first + interval '1 month') AT TIME ZONE 'UTC')
    THEN
        EXECUTE format(
            'CREATE TABLE ledger.%I PARTITION OF ledger.observation FOR VALUES FROM (%L) TO (%L)',
            name, first::timestamp AT TIME ZONE 'UTC', (first + interval '1 month') AT TIME ZONE 'UTC');
    END IF;
END $$;
COMMENT ON FUNCTION ledger.add_observation_month IS
    'Makes the partition for the month of an instant, in UTC. A month that already has rows in observation_other '
    'stays there';

CREATE FUNCTION ledger.drop_empty_observation_months(before timestamptz) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
    name     text;
    is_empty boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('ledger.add_observation_month'));
    FOR name IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'ledger.observation'::regclass AND c.relname ~ '^observation_[0-9]{4}_[0-9]{2}$'
          AND (to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month') AT TIME ZONE 'UTC' <= before
        ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT NOT EXISTS (SELECT FROM ledger.%I)', name) INTO is_empty;
        CONTINUE WHEN NOT is_empty;
        BEGIN
            EXECUTE format('LOCK TABLE ONLY ledger.observation, ledger.%I IN ACCESS EXCLUSIVE MODE', name);
            -- An answer may have come since.
            EXECUTE format('SELECT NOT EXISTS (SELECT FROM ledger.%I)', name) INTO is_empty;
            IF is_empty THEN EXECUTE format('DROP TABLE ledger.%I', name); END IF;
            RETURN is_empty::int;
        EXCEPTION WHEN lock_not_available THEN
            -- A reader has the month. The next run finds it again.
            RETURN 0;
        END;
    END LOOP;
    RETURN 0;
END $$;
COMMENT ON FUNCTION ledger.drop_empty_observation_months IS
    'Drops one month that ended before an instant and is empty; returns 1, or 0 if there is none. It waits for no '
    'reader: while it holds or awaits its locks, new answers of every month wait too';
REVOKE EXECUTE ON FUNCTION ledger.drop_empty_observation_months(timestamptz) FROM PUBLIC;

CREATE TABLE ledger.pruned_receipt (
    receipt_id   bigint PRIMARY KEY REFERENCES ledger.receipt ON DELETE CASCADE,
    answers      bigint NOT NULL,
    first_as_of  timestamptz NOT NULL,
    pruned_at    timestamptz NOT NULL
);
COMMENT ON TABLE ledger.pruned_receipt IS
    'Receipts with observations that were deleted, because the remaining ones say the same of everything that the '
    'receipt holds';
COMMENT ON COLUMN ledger.pruned_receipt.answers IS 'How many observations were deleted';
COMMENT ON COLUMN ledger.pruned_receipt.first_as_of IS
    'Apple''s clock of the first deleted observation: the remaining ones speak for everything since then';

CREATE TABLE ledger.unread_claim (
    app_id                   int NOT NULL REFERENCES ledger.app ON DELETE CASCADE,
    name                     text NOT NULL,
    is_unreadable            boolean NOT NULL,
    texts                    bigint NOT NULL,
    first_seen_at            timestamptz NOT NULL DEFAULT now(),
    last_seen_at             timestamptz NOT NULL DEFAULT now(),
    example                  text,
    original_transaction_id  text,
    PRIMARY KEY (app_id, name)
);
COMMENT ON TABLE ledger.unread_claim IS
    'Claims of Apple''s signed texts that the program does not know, words in claims that it does not know, and values '
    'that are not of the form that it reads; a bounded number for each app';
COMMENT ON COLUMN ledger.unread_claim.name IS
    'The kind of text with the place of the claim; a word that is not known follows an equals sign';
COMMENT ON COLUMN ledger.unread_claim.is_unreadable IS 'Whether the claim is known and its value cannot be read';
COMMENT ON COLUMN ledger.unread_claim.texts IS 'How many texts stated it, each time that one was read';
COMMENT ON COLUMN ledger.unread_claim.example IS 'One such text as Apple signed it; null: none, or erased';
COMMENT ON COLUMN ledger.unread_claim.original_transaction_id IS
    'The subscription or purchase that the example is about, by which an erasure finds it';
