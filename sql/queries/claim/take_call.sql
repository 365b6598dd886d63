-- Takes one call of the Server API from the budget of app $1, environment $2 and kind of call $3: $4 calls a second, $5 at
-- once. Returns whether it may be made, and else the seconds after which to ask again.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
), taken AS (
    INSERT INTO ledger.call_budget AS b (app_id, environment, endpoint, tokens, refilled_at)
    SELECT $1::int, $2::text::ledger.environment, $3::text, GREATEST(0, $5::float8 - 1), clock.at FROM clock
    ON CONFLICT (app_id, environment, endpoint) DO UPDATE
    SET tokens = LEAST($5::float8, b.tokens + $4::float8
            * GREATEST(0, EXTRACT(epoch FROM EXCLUDED.refilled_at - b.refilled_at))::float8) - 1,
        refilled_at = GREATEST(b.refilled_at, EXCLUDED.refilled_at)
    WHERE b.paused_until <= EXCLUDED.refilled_at
      AND LEAST($5::float8, b.tokens + $4::float8
            * GREATEST(0, EXTRACT(epoch FROM EXCLUDED.refilled_at - b.refilled_at))::float8) >= 1
    RETURNING 1
)
SELECT EXISTS (SELECT FROM taken) AS granted,
       (SELECT GREATEST(
            0.01, EXTRACT(epoch FROM GREATEST(b.paused_until, 'epoch') - clock.at)::float8,
            (1 - b.tokens) / $4::float8 - EXTRACT(epoch FROM clock.at - b.refilled_at)::float8)
        FROM ledger.call_budget b CROSS JOIN clock
        WHERE b.app_id = $1::int AND b.environment = $2::text::ledger.environment AND b.endpoint = $3::text) AS wait_seconds
