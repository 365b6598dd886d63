-- Stops claiming for app $1 for $2 seconds because of $3; a pause that lasts longer stays.
UPDATE ledger.app_budget
SET paused_until = now() + make_interval(secs => $2::float8), paused_because = $3::text
WHERE app_id = $1::int AND paused_until < now() + make_interval(secs => $2::float8)
