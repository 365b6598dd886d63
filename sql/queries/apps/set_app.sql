-- Changes the given settings (null: keep) of the app with bundle $1: name $2, sandbox $3, ownership policy $4, rate $5,
-- burst $6, sweep $7; in milliseconds: the spread of checks before an end $8, leeway $9, leeway in the sandbox $10,
-- outage allowance $11; verifier $12, Apple's number of the app $13. A default burst (the calls of one second) follows the rate.
WITH changed AS (
    UPDATE ledger.app SET
        name = COALESCE($2::text, name),
        sandbox_allowed = COALESCE($3::boolean, sandbox_allowed),
        ownership_policy = COALESCE($4::text::ledger.ownership_policy, ownership_policy),
        sweep = COALESCE($7::text, sweep), pre_check_spread_ms = COALESCE($8::bigint, pre_check_spread_ms),
        leeway_ms = COALESCE($9::bigint, leeway_ms), sandbox_leeway_ms = COALESCE($10::bigint, sandbox_leeway_ms),
        outage_allowance_ms = COALESCE($11::bigint, outage_allowance_ms),
        verifier = COALESCE($12::text, verifier),
        compares_since = CASE WHEN COALESCE($12::text, verifier) = 'both' THEN COALESCE(compares_since, now()) END,
        apple_app_id = COALESCE($13::bigint, apple_app_id)
    WHERE bundle_id = $1::text
    RETURNING app_id
)
UPDATE ledger.app_budget b
SET rate = COALESCE($5::float8, b.rate), burst = next.burst, tokens = LEAST(b.tokens, next.burst)
FROM changed c
JOIN ledger.app_budget present USING (app_id)
CROSS JOIN LATERAL (
    SELECT CASE WHEN $6::float8 IS NOT NULL THEN $6::float8
                WHEN present.burst = GREATEST(1, present.rate) THEN GREATEST(1, COALESCE($5::float8, present.rate))
                ELSE present.burst END AS burst) next
WHERE b.app_id = c.app_id
RETURNING b.app_id
