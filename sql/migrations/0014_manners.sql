-- Manners towards Apple: calls slow down when Apple asks for it and speed up again, everything stops together when Apple is
-- away, and a wish for a check is not swallowed by a lease.
ALTER TABLE ledger.poll_schedule ADD COLUMN want_at timestamptz;
COMMENT ON COLUMN ledger.poll_schedule.want_at IS
    'By when somebody wanted the next check while the receipt was leased; honoured when the lease is given back';

ALTER TABLE ledger.app
    ADD COLUMN pre_check_spread_ms bigint NOT NULL DEFAULT 600000,
    ADD CONSTRAINT app_pre_check_spread_is_half_a_day CHECK (pre_check_spread_ms BETWEEN 0 AND 43200000);
COMMENT ON COLUMN ledger.app.pre_check_spread_ms IS
    'Over how long the checks shortly before an end are spread; a promotion after which many end together needs more';

ALTER TABLE ledger.app_budget
    ADD COLUMN slowed_to double precision,
    ADD COLUMN slowed_at timestamptz,
    ADD CONSTRAINT app_budget_slowed_has_both CHECK ((slowed_to IS NULL) = (slowed_at IS NULL)),
    ADD CONSTRAINT app_budget_never_stands_still CHECK (slowed_to >= 0.5);
COMMENT ON COLUMN ledger.app_budget.slowed_to IS
    'Calls a second when Apple last asked for fewer, at slowed_at; since then they grow, see ledger.calls_a_second';

-- How many calls a second an app may make at an instant (0: any number): from what it was slowed to, a sixtieth of its rate
-- more each second, so that a minute after the last complaint all is as before. An unlimited app grows to 1000.
CREATE FUNCTION ledger.calls_a_second(
    rate double precision, slowed_to double precision, slowed_at timestamptz, at timestamptz)
RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN slowed_to IS NULL OR grown >= full_rate THEN rate ELSE grown END
    FROM (SELECT CASE rate WHEN 0 THEN 1000 ELSE rate END AS full_rate) f
    CROSS JOIN LATERAL (
        SELECT slowed_to + GREATEST(full_rate / 60, 0.05) * GREATEST(0, EXTRACT(epoch FROM at - slowed_at))::float8 AS grown) g
$$;

-- One row: while Apple answers nobody, all apps wait together, whoever found it out.
CREATE TABLE ledger.apple_breaker (
    is_only      boolean PRIMARY KEY DEFAULT true,
    failures     smallint NOT NULL DEFAULT 0,
    open_until   timestamptz NOT NULL DEFAULT '-infinity',
    open_reason  text,
    CONSTRAINT apple_breaker_is_one CHECK (is_only)
) WITH (fillfactor = 50);
INSERT INTO ledger.apple_breaker DEFAULT VALUES;
-- Without this the planner takes it for a table of a thousand rows until the first autovacuum.
ANALYZE ledger.apple_breaker;
COMMENT ON COLUMN ledger.apple_breaker.failures IS
    'Rounds of calls in a row, about whatever app, most of which brought no answer at all';

-- Tables whose rows are replaced all the time are tidied early and without pauses: what is dead lies in the way of a claim.
ALTER TABLE ledger.subscription SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE ledger.receipt SET (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0.1);
ALTER TABLE ledger.app_budget SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE ledger.apple_breaker SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE ledger.worker SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE ledger.vouched_minute SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE ledger.event_outbox SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
