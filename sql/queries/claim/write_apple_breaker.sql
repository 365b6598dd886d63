-- Records that $1 consecutive rounds of calls got no answer; no app calls Apple for $2 seconds (0: go on) because of
-- $3.
UPDATE ledger.apple_breaker
SET failures = $1::smallint,
    paused_until = GREATEST(paused_until, clock_timestamp() + make_interval(secs => $2::float8)),
    paused_because = CASE WHEN $2::float8 > 0 THEN $3::text ELSE paused_because END
