-- Records that Apple accepted the shared secret of app $1 in environment $2, unless that is known or the sealed secret is
-- no longer $3. Refusals before it were about single receipts.
INSERT INTO ledger.secret_trial AS t (app_id, environment, proved_at)
SELECT a.app_id, $2::text::ledger.environment, now()
FROM ledger.app a WHERE a.app_id = $1::int AND a.sealed_secret = $3::bytea
ON CONFLICT (app_id, environment) DO UPDATE SET proved_at = now(), refused_at = NULL, refused_receipts = '{}', is_untold = false
WHERE t.proved_at IS NULL AND t.paused_since IS NULL
