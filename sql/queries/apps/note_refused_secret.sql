-- Records that Apple refused the shared secret of app $1 in environment $2 in a call that began at $3. An earlier refusal
-- that was not followed by a trial stays, and then nothing is written or locked.
INSERT INTO ledger.secret_trial AS t (app_id, environment, refused_at)
SELECT $1::int, $2::text::ledger.environment, $3::timestamptz
WHERE NOT EXISTS (
    SELECT FROM ledger.secret_trial k
    WHERE k.app_id = $1::int AND k.environment = $2::text::ledger.environment AND k.refused_at IS NOT NULL)
ON CONFLICT (app_id, environment) DO UPDATE SET refused_at = COALESCE(t.refused_at, EXCLUDED.refused_at)
