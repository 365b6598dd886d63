-- Many machines: which purchases a receipt holds is found without reading what all receipts hold.
CREATE INDEX receipt_purchase_of_receipt ON ledger.receipt_purchase (receipt_id);

-- As before, but one month a call, and waiting for nobody: whoever drops a month, or waits for that, keeps new answers of
-- every month waiting until the end of the transaction.
CREATE OR REPLACE FUNCTION ledger.drop_empty_observation_months(before timestamptz) RETURNS int
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
            -- Somebody may have written there since.
            EXECUTE format('SELECT NOT EXISTS (SELECT FROM ledger.%I)', name) INTO is_empty;
            IF is_empty THEN EXECUTE format('DROP TABLE ledger.%I', name); END IF;
            RETURN is_empty::int;
        EXCEPTION WHEN lock_not_available THEN
            -- Somebody reads. The next run finds what is empty again.
            RETURN 0;
        END;
    END LOOP;
    RETURN 0;
END $$;
