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
    recorded_at     timestamptz NOT NULL,
    PRIMARY KEY (observation_id, recorded_at),
    CONSTRAINT observation_ends_after_it_begins CHECK (first_as_of <= last_as_of)
) PARTITION BY RANGE (recorded_at);
-- The table needs the sequence first, so that the sequence can belong to it only now.
ALTER SEQUENCE ledger.observation_id_seq OWNED BY ledger.observation.observation_id;
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
REVOKE EXECUTE ON FUNCTION ledger.drop_empty_observation_months(timestamptz) FROM PUBLIC;
COMMENT ON FUNCTION ledger.drop_empty_observation_months IS
    'Drops one month that ended before an instant and is empty; returns 1, or 0 if there is none. It waits for no '
    'reader: while it holds or awaits its locks, new answers of every month wait too';

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
