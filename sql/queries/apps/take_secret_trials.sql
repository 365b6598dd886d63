-- Takes the shared secrets that are to be tried now, of app $2 alone unless it is null; no other process takes them within
-- $1 seconds. That are those of environments that are paused, and those that Apple refused about some receipt after it had
-- accepted them in one of both environments.
UPDATE ledger.secret_trial t
SET try_at = now() + make_interval(secs => $1::float8)
FROM ledger.app a
WHERE t.try_at <= now() AND (t.paused_since IS NOT NULL OR t.refused_at IS NOT NULL AND EXISTS (
        SELECT FROM ledger.secret_trial k WHERE k.app_id = t.app_id AND k.proved_at IS NOT NULL))
  AND a.app_id = t.app_id AND a.removed_at IS NULL AND t.app_id = COALESCE($2::int, t.app_id)
RETURNING t.app_id, t.environment::text AS environment, t.refused_at, t.paused_since IS NOT NULL AS paused, now() AS began_at
