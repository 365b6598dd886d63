-- Returns the histories of notifications that cannot be read, or were not read for $1 seconds; not those of environments
-- where nothing was bought: Apple refuses the key of an app that was never released there.
SELECT a.bundle_id, c.environment::text AS environment, c.complete_until, c.reason,
       c.complete_until < now() - make_interval(secs => $1::float8) AS is_behind
FROM ledger.catch_up c JOIN ledger.app a USING (app_id) JOIN ledger.server_key USING (app_id)
WHERE c.kind = 'everything' AND a.removed_at IS NULL AND (a.sandbox_allowed OR c.environment = 'Production')
  AND (c.reason IS NOT NULL OR c.complete_until < now() - make_interval(secs => $1::float8))
  AND (EXISTS (SELECT FROM ledger.subscription s WHERE s.app_id = c.app_id AND s.environment = c.environment)
       OR EXISTS (SELECT FROM ledger.purchase p WHERE p.app_id = c.app_id AND p.environment = c.environment))
ORDER BY a.bundle_id, c.environment
