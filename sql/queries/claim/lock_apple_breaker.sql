-- Locks the breaker that all apps share and reads it with the clock.
SELECT g.failures, GREATEST(g.paused_until, 'epoch') AS paused_until, clock_timestamp() AS at FROM ledger.apple_breaker g FOR NO KEY UPDATE
