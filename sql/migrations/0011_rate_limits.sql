-- How many calls to Apple an app may make, and the breakers that stop them.
CREATE TABLE ledger.app_budget (
    app_id          int PRIMARY KEY REFERENCES ledger.app,
    rate            double precision NOT NULL DEFAULT 50,
    burst           double precision NOT NULL DEFAULT 50,
    tokens          double precision NOT NULL DEFAULT 50,
    refilled_at     timestamptz NOT NULL DEFAULT now(),
    slowed_to       double precision,
    slowed_at       timestamptz,
    failures        smallint NOT NULL DEFAULT 0,
    paused_until    timestamptz NOT NULL DEFAULT '-infinity',
    paused_because  text,
    CONSTRAINT app_budget_is_sane CHECK (rate >= 0 AND burst >= 1 AND tokens >= 0),
    CONSTRAINT app_budget_slowed_has_both CHECK ((slowed_to IS NULL) = (slowed_at IS NULL)),
    CONSTRAINT app_budget_never_stands_still CHECK (slowed_to >= 0.5)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE ledger.app_budget IS
    'The budget of calls to Apple of each app (a token bucket), and the breaker of the app';
COMMENT ON COLUMN ledger.app_budget.rate IS 'Calls a second; 0: unlimited';
COMMENT ON COLUMN ledger.app_budget.burst IS 'Calls at once: the most tokens that the app can save';
COMMENT ON COLUMN ledger.app_budget.tokens IS 'Calls that the app could make at refilled_at';
COMMENT ON COLUMN ledger.app_budget.slowed_to IS
    'Calls a second when Apple last asked for fewer, at slowed_at; since then they grow (ledger.calls_a_second)';
COMMENT ON COLUMN ledger.app_budget.failures IS
    'Rounds of answers in a row that mostly failed; above 0 workers try only a few receipts';
COMMENT ON COLUMN ledger.app_budget.paused_until IS
    'Workers ask nothing for this app until then; paused_because says why';

CREATE FUNCTION ledger.calls_a_second(
    rate double precision, slowed_to double precision, slowed_at timestamptz, at timestamptz)
RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN slowed_to IS NULL OR grown >= full_rate THEN rate ELSE grown END
    FROM (SELECT CASE rate WHEN 0 THEN 1000 ELSE rate END AS full_rate) f
    CROSS JOIN LATERAL (
        SELECT slowed_to
            + GREATEST(full_rate / 60, 0.05) * GREATEST(0, EXTRACT(epoch FROM at - slowed_at))::float8 AS grown) g
$$;
COMMENT ON FUNCTION ledger.calls_a_second IS
    'How many calls a second an app may make at an instant (0: unlimited). From what it was slowed to, it regains a '
    'sixtieth of its rate each second, so a minute after Apple''s last complaint it has its full rate. An unlimited '
    'app grows to 1000';

CREATE TABLE ledger.apple_breaker (
    is_only         boolean PRIMARY KEY DEFAULT true,
    failures        smallint NOT NULL DEFAULT 0,
    paused_until    timestamptz NOT NULL DEFAULT '-infinity',
    paused_because  text,
    CONSTRAINT apple_breaker_is_one CHECK (is_only)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
INSERT INTO ledger.apple_breaker DEFAULT VALUES;
-- Without this the planner takes it to have a thousand rows until the first autovacuum.
ANALYZE ledger.apple_breaker;
COMMENT ON TABLE ledger.apple_breaker IS
    'The breaker of all apps, one row: while Apple does not answer at all, every worker waits';
COMMENT ON COLUMN ledger.apple_breaker.failures IS
    'Rounds of calls in a row, about any app, that mostly brought no answer at all';
COMMENT ON COLUMN ledger.apple_breaker.paused_until IS
    'Workers ask nothing until then; paused_because says why';
