-- Rounds of claiming as a worker does them, by a clock of their own, with the time that each took.
\set ON_ERROR_STOP on
CREATE SCHEMA bench;
CREATE TABLE bench.clock AS SELECT now() - interval '30 days' AS began_at, now() - interval '30 days' AS at;
CREATE TABLE bench.round (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, mode text NOT NULL, is_full boolean NOT NULL,
    receipts int NOT NULL, look_ms float8 NOT NULL, claim_ms float8 NOT NULL);
CREATE TYPE bench.claimed AS (
    receipt_id bigint, quarantined boolean, app_id int, lane text, lease_token bigint, attempts smallint,
    scheduled_for timestamptz, due_at timestamptz, fingerprint bytea, meaning bytea, polled text, claimed_at timestamptz, environment text,
    asks_latest boolean, data bytea);
CREATE TYPE bench.due AS (app_id int, lane text, receipts bigint, busy_seconds float8);

-- Each round, five receipts of each of twenty apps are looked for and claimed by the product's statements (bench.look and
-- bench.claim), and given back to be asked about again within three days. The clock moves by `step`. What was due `margin`
-- before the last claim is not looked at again; in the first round everything is. The server only learns what there is to tidy
-- up when a call ends: a call is of 150 rounds at most, half a minute at 500 a second.
-- A round takes at least `seconds_each`.
CREATE PROCEDURE bench.work(mode text, rounds int, step interval, margin interval, seconds_each float8)
LANGUAGE plpgsql AS $$
DECLARE
    apps CONSTANT int[] := (SELECT array_agg(g) FROM generate_series(1, 20) g);
    lanes CONSTANT text[] := array_fill('sweep'::text, ARRAY[20]);
    counts CONSTANT int[] := array_fill(5, ARRAY[20]);
    moment timestamptz := (SELECT at FROM bench.clock);
    low timestamptz := '-infinity';
    first_due timestamptz;
    ids bigint[];
    began timestamptz;
    looked timestamptz;
    claimed timestamptz;
BEGIN
    FOR round IN 1..rounds LOOP
        moment := moment + step;
        began := clock_timestamp();
        PERFORM * FROM bench.look(192, moment, apps, lanes, array_fill(low, ARRAY[20]));
        looked := clock_timestamp();
        SELECT array_agg(c.receipt_id), min(c.due_at) INTO ids, first_due
        FROM bench.claim(1, 60, apps, lanes, counts, moment, NULL, array_fill(low, ARRAY[20])) c;
        COMMIT;
        claimed := clock_timestamp();
        INSERT INTO bench.round (mode, is_full, receipts, look_ms, claim_ms)
        VALUES (mode, round = 1, COALESCE(cardinality(ids), 0), 1000 * extract(epoch FROM looked - began),
                1000 * extract(epoch FROM claimed - looked));
        UPDATE ledger.poll_schedule s
        SET due_at = n.at, scheduled_for = n.at, want_at = NULL, attempts = 0, leased_by = NULL, crashes = 0
        FROM (SELECT id, moment + interval '1 hour' + random() * interval '3 days' AS at FROM unnest(ids) id) n
        WHERE s.receipt_id = n.id;
        COMMIT;
        low := LEAST(first_due, moment - margin);
        PERFORM pg_sleep(seconds_each - extract(epoch FROM clock_timestamp() - began));
    END LOOP;
    UPDATE bench.clock SET at = moment;
    COMMIT;
END $$;

-- Medians in milliseconds of the last rounds of a mode, those not counted that looked at everything.
CREATE FUNCTION bench.median(of_mode text, last_rounds int, OUT look_ms numeric, OUT claim_ms numeric, OUT receipts int)
LANGUAGE sql AS $$
    SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY r.look_ms)::numeric, 2),
           round(percentile_cont(0.5) WITHIN GROUP (ORDER BY r.claim_ms)::numeric, 2), min(r.receipts)
    FROM (
        SELECT * FROM bench.round WHERE mode = of_mode AND NOT is_full ORDER BY number DESC LIMIT last_rounds) r
$$;
