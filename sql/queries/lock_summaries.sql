-- Makes the caller's transaction the only one that summarises, or says that another one is at work; plans are not compiled,
-- and made for the subscriptions at hand.
SELECT pg_try_advisory_xact_lock(hashtext('ledger.summarise')) AS locked, set_config('jit', 'off', true) AS jit,
       set_config('plan_cache_mode', 'force_custom_plan', true) AS plans
