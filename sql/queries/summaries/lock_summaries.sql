-- Makes this transaction the only one that updates the summaries, or reports that another one is at work. Disables JIT
-- and makes plans for the actual subscriptions.
SELECT pg_try_advisory_xact_lock(hashtext('ledger.summarise')) AS locked, set_config('jit', 'off', true) AS jit,
       set_config('plan_cache_mode', 'force_custom_plan', true) AS plans
