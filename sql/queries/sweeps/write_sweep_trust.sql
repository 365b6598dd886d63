-- Stores the judgement about app $1: factor $2, reported $3, missed $4, lower bound $5, last notification $6, longest
-- silence in milliseconds $7, whether it is silent $8, counted until $9. Where the factor falls, planned sweeps are to be
-- moved forward.
UPDATE ledger.sweep_trust
SET factor = $2::smallint, reported = $3::bigint, missed = $4::bigint, lower_bound = $5::float8,
    last_notification_at = $6::timestamptz, silence_longest_ms = $7::bigint, is_silent = $8::boolean,
    counted_until = $9::timestamptz,
    all_swept_since = CASE WHEN $2::smallint = 1 THEN COALESCE(all_swept_since, now()) END,
    recalled_to = CASE WHEN $2::smallint < factor THEN 0 ELSE recalled_to END,
    recalled_factor = CASE WHEN $2::smallint < factor THEN GREATEST(factor, recalled_factor) ELSE recalled_factor END
WHERE app_id = $1::int
