-- Catch-up: gives the history of app $1, environment $2 and kind $3 back, which worker $4 has, for $5 seconds; $6 says why it
-- could not be read. With $7 the stretch is read anew, from $8 seconds later.
UPDATE ledger.catch_up c
SET due_at = now() + make_interval(secs => $5::float8), leased_by = NULL, reason = $6::text,
    failing_since = CASE WHEN $6::text IS NOT NULL THEN COALESCE(c.failing_since, now()) END,
    page = CASE WHEN NOT $7::boolean THEN c.page END, reads_until = CASE WHEN NOT $7::boolean THEN c.reads_until END,
    reads_from = LEAST(now(), c.reads_from + make_interval(secs => $8::float8))
WHERE c.app_id = $1::int AND c.environment = $2::text::ledger.environment AND c.kind = $3::text AND c.leased_by = $4::int
