-- Verify: no statement of this transaction takes longer than $1 milliseconds; plans are not compiled, and made for the slice at
-- hand: one for any slice would read whole tables.
SELECT set_config('statement_timeout', $1::int::text, true) AS milliseconds, set_config('jit', 'off', true) AS jit,
       set_config('plan_cache_mode', 'force_custom_plan', true) AS plans
