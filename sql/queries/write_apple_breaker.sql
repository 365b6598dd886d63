-- Keeps that $1 rounds of calls in a row brought no answer; no app asks for $2 seconds (0: go on) because of $3.
UPDATE ledger.apple_breaker
SET failures = $1::smallint,
    open_until = GREATEST(open_until, clock_timestamp() + make_interval(secs => $2::float8)),
    open_reason = CASE WHEN $2::float8 > 0 THEN $3::text ELSE open_reason END
