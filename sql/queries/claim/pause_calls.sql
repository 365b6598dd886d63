-- Stops calls of kind $3 about app $1 in environment $2 for $4 seconds; a pause that lasts longer stays.
INSERT INTO ledger.call_budget AS b (app_id, environment, endpoint, tokens, refilled_at, paused_until)
VALUES ($1::int, $2::text::ledger.environment, $3::text, 0, now(), now() + make_interval(secs => $4::float8))
ON CONFLICT (app_id, environment, endpoint) DO UPDATE
SET paused_until = GREATEST(b.paused_until, EXCLUDED.paused_until), tokens = 0, refilled_at = now()
