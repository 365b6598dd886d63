-- Catch-up: gives worker $1 for $2 seconds the history of notifications that is due longest, with the stretch to read: on from where it
-- is, or at most $3 seconds. Apple's history goes back $4 days in production and $5 in the sandbox. Histories that are
-- missing are added, from when the app was: nothing was listened to before.
WITH added AS (
    INSERT INTO ledger.catch_up (app_id, environment, kind, complete_until, reads_from)
    SELECT a.app_id, e.environment, k.kind, a.created_at, a.created_at
    FROM ledger.app a JOIN ledger.server_key USING (app_id),
         unnest(enum_range(NULL::ledger.environment)) AS e(environment),
         unnest(ARRAY['everything', 'failures']) AS k(kind)
    WHERE NOT EXISTS (
        SELECT FROM ledger.catch_up c
        WHERE c.app_id = a.app_id AND c.environment = e.environment AND c.kind = k.kind)
    ON CONFLICT DO NOTHING
), due AS MATERIALIZED (
    SELECT c.app_id, c.environment, c.kind,
           GREATEST(c.reads_from, now() - make_interval(
               days => CASE c.environment WHEN 'Production' THEN $4::int ELSE $5::int END)) AS begins_at
    FROM ledger.catch_up c JOIN ledger.app a USING (app_id) JOIN ledger.server_key USING (app_id)
    WHERE c.due_at <= now() AND a.removed_at IS NULL AND (a.sandbox_allowed OR c.environment = 'Production')
    ORDER BY c.due_at LIMIT 1
    FOR UPDATE OF c SKIP LOCKED
)
UPDATE ledger.catch_up c
SET due_at = now() + make_interval(secs => $2::float8), leased_by = $1::int,
    reads_from = CASE WHEN c.reads_until IS NULL THEN d.begins_at ELSE c.reads_from END,
    reads_until = COALESCE(c.reads_until, GREATEST(
        d.begins_at, LEAST(now(), d.begins_at + make_interval(secs => $3::float8))))
FROM due d JOIN ledger.app a USING (app_id)
WHERE c.app_id = d.app_id AND c.environment = d.environment AND c.kind = d.kind
RETURNING a.app_id, a.bundle_id, a.apple_app_id, a.sandbox_allowed, clock_timestamp() AS now,
          c.environment::text AS environment, c.kind, c.reads_from, c.reads_until, c.page
