-- What Apple said: one row per meaning a receipt was given, kept by month so that old months can be archived.
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
    answers         bigint NOT NULL DEFAULT 1,
    meaning         bytea NOT NULL,
    body            bytea,
    recorded_at     timestamptz NOT NULL,
    PRIMARY KEY (observation_id, recorded_at),
    CONSTRAINT observation_ends_after_it_begins CHECK (first_as_of <= last_as_of)
) PARTITION BY RANGE (recorded_at);
ALTER SEQUENCE ledger.observation_id_seq OWNED BY ledger.observation.observation_id;
CREATE INDEX observation_of_receipt ON ledger.observation (receipt_id, observation_id);
CREATE TABLE ledger.observation_other PARTITION OF ledger.observation DEFAULT;

-- Makes room for the month of the given instant. Rows of a month nobody made room for in time are in observation_other,
-- and so is the rest of that month.
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
