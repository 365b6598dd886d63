-- Verify: limits each statement of this transaction to $1 milliseconds, disables JIT, and makes plans for the actual
-- slice: a generic plan would read whole tables.
SELECT set_config('statement_timeout', $1::int::text, true) AS milliseconds, set_config('jit', 'off', true) AS jit,
       set_config('plan_cache_mode', 'force_custom_plan', true) AS plans
