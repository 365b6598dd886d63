-- Days whose summary differs from the full history: no rows when the summaries are right
-- Variables: bundle_id, environment.
-- The overview of the admin page reads sums that are kept up from the feed; this computes them anew from every subscription
-- and names each day, currency and figure that differs, among the UTC days that are over. A subscription whose settlement
-- is not in the summaries yet differs for some seconds; see perennial.summary_now.
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
SELECT day, bundle_id, currency, figure, summarised, recomputed
FROM perennial.day_summary s
FULL JOIN perennial.day_recomputed r USING (bundle_id, environment, day, currency)
CROSS JOIN LATERAL (VALUES
    ('active', s.active::numeric, r.active::numeric), ('trial', s.trial, r.trial), ('paying', s.paying, r.paying),
    ('monthly_milliunits', s.monthly_milliunits, r.monthly_milliunits), ('began', s.began, r.began),
    ('returned', s.returned, r.returned), ('churned', s.churned, r.churned),
    ('trials_started', s.trials_started, r.trials_started),
    ('trials_converted', s.trials_converted, r.trials_converted), ('trials_lost', s.trials_lost, r.trials_lost)
) AS told (figure, summarised, recomputed)
WHERE environment = :'environment' AND (:'bundle_id' = '' OR bundle_id = :'bundle_id')
  AND day < (now() AT TIME ZONE 'UTC')::date
  AND COALESCE(summarised, 0) <> COALESCE(recomputed, 0)
ORDER BY day, bundle_id, currency, figure;
