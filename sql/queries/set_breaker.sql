-- Keeps that $2 rounds of answers about app $1 failed in a row; nothing is asked for $3 seconds (0: go on) because of $4.
UPDATE ledger.app_budget
SET failures = $2::smallint,
    open_until = GREATEST(open_until, now() + make_interval(secs => $3::float8)),
    open_reason = CASE WHEN $3::float8 > 0 THEN $4::text ELSE open_reason END
WHERE app_id = $1::int
