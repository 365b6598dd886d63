-- Locks the rate limit of app $1 and reads it with the clock.
SELECT b.rate, b.slowed_to, b.slowed_at, b.failures, GREATEST(b.paused_until, 'epoch') AS app_paused_until, clock_timestamp() AS at
FROM ledger.app_budget b WHERE b.app_id = $1::int
FOR NO KEY UPDATE
