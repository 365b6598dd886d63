-- Catch-up: records that worker $4 stored a page of the history of app $1, environment $2 and kind $3. It reads on at page
-- $5 for $6 seconds more. Without a page the stretch is complete: the next one is due now, or after $7 seconds if it would be
-- shorter, and then begins $8 seconds earlier. No row: another worker has the history.
UPDATE ledger.catch_up c
SET page = $5::text, failing_since = NULL, reason = NULL,
    complete_until = CASE WHEN $5::text IS NULL THEN GREATEST(c.complete_until, c.reads_until) ELSE c.complete_until END,
    reads_from = CASE WHEN $5::text IS NOT NULL THEN c.reads_from
                      WHEN c.reads_until > now() - make_interval(secs => $7::float8)
                      THEN c.reads_until - make_interval(secs => $8::float8)
                      ELSE c.reads_until END,
    reads_until = CASE WHEN $5::text IS NOT NULL THEN c.reads_until END,
    leased_by = CASE WHEN $5::text IS NOT NULL THEN c.leased_by END,
    due_at = now() + make_interval(secs => CASE
        WHEN $5::text IS NOT NULL THEN $6::float8
        WHEN c.reads_until > now() - make_interval(secs => $7::float8) THEN $7::float8
        ELSE 0 END)
WHERE c.app_id = $1::int AND c.environment = $2::text::ledger.environment AND c.kind = $3::text AND c.leased_by = $4::int
RETURNING c.kind
