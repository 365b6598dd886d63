-- Settlement: stops the checks' calls of the Server API about app $1 in environment $2 for $3 seconds, because Apple refuses its key
-- ($4); not where the key was stored after the claim ($5), or is gone. A pause that lasts longer stays.
INSERT INTO ledger.call_budget AS b (app_id, environment, endpoint, tokens, refilled_at, paused_until, refused_because)
SELECT k.app_id, $2::text::ledger.environment, e.endpoint, 0, now(), now() + make_interval(secs => $3::float8), $4::text
FROM ledger.server_key k CROSS JOIN (VALUES ('history'), ('statuses')) AS e(endpoint)
WHERE k.app_id = $1::int AND k.stored_at <= $5::timestamptz
ON CONFLICT (app_id, environment, endpoint) DO UPDATE
SET paused_until = GREATEST(b.paused_until, EXCLUDED.paused_until), refused_because = EXCLUDED.refused_because
