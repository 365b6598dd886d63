-- Stores the rate limit of app $1: slowed to $2 calls a second at $3 (null: not at all), $4 failed rounds; no calls for
-- $5 seconds (0: go on) because of $6. Calls saved up at a faster rate are lost.
UPDATE ledger.app_budget
SET slowed_to = $2::float8, slowed_at = $3::timestamptz, failures = $4::smallint,
    tokens = CASE WHEN $3::timestamptz IS DISTINCT FROM slowed_at THEN LEAST(tokens, 1) ELSE tokens END,
    paused_until = GREATEST(paused_until, clock_timestamp() + make_interval(secs => $5::float8)),
    paused_because = CASE WHEN $5::float8 > 0 THEN $6::text ELSE paused_because END
WHERE app_id = $1::int
