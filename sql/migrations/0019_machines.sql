-- Many machines: which programs work with the schema while they are replaced one by one; answers that are kept no more.

-- One row. A migration that only adds leaves it as it is, and programs that do not know that migration go on. A migration that
-- takes away or changes what older programs use sets program_min to its own number, and those are refused from then on.
CREATE TABLE ledger.compatibility (
    is_only      boolean PRIMARY KEY DEFAULT true,
    program_min  int NOT NULL,
    CONSTRAINT compatibility_is_one CHECK (is_only)
);
INSERT INTO ledger.compatibility (program_min) VALUES (18);
COMMENT ON COLUMN ledger.compatibility.program_min IS
    'How many migrations a program must know, at least, to work with this schema';

-- Answers of a receipt that are kept no more, because what is kept says the same of everything that the receipt holds. The
-- clock of the first of them tells a rebuild that nothing is missing since then.
CREATE TABLE ledger.pruned_receipt (
    receipt_id   bigint PRIMARY KEY REFERENCES ledger.receipt ON DELETE CASCADE,
    answers      bigint NOT NULL,
    first_as_of  timestamptz NOT NULL,
    pruned_at    timestamptz NOT NULL
);

-- Drops the months that ended before an instant and hold nothing, and answers how many. A month that somebody reads at the
-- moment is left for the next time.
CREATE FUNCTION ledger.drop_empty_observation_months(before timestamptz) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    name     text;
    is_empty boolean;
    dropped  int := 0;
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
            -- Somebody may have written there since.
            EXECUTE format('LOCK TABLE ledger.%I IN ACCESS EXCLUSIVE MODE', name);
            EXECUTE format('SELECT NOT EXISTS (SELECT FROM ledger.%I)', name) INTO is_empty;
            CONTINUE WHEN NOT is_empty;
            EXECUTE format('DROP TABLE ledger.%I', name);
            dropped := dropped + 1;
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
    RETURN dropped;
END $$;
REVOKE EXECUTE ON FUNCTION ledger.drop_empty_observation_months(timestamptz) FROM PUBLIC;
