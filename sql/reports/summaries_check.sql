-- Days whose summary differs from the full history: no rows when the summaries are right
-- Variables: bundle_id, environment.
-- The overview of the admin page reads sums that a worker updates from the feed, and the money reports read rows
-- updated with them. This report computes both anew from every subscription. It lists each day, currency and figure
-- that differs, among past UTC days. For rows it counts those that only one of the two has. A subscription whose
-- settlement is not in the summaries yet differs for some seconds in the sums, never in the rows; see
-- perennial.summary_now. The report reads every history twice, ten thousand subscriptions at a time: a million take
-- about seven minutes.
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
WITH reported AS (
    SELECT day, bundle_id, environment, currency, figure, summarised, recomputed
    FROM perennial.day_summary s
    FULL JOIN perennial.day_recomputed r USING (bundle_id, environment, day, currency)
    CROSS JOIN LATERAL (VALUES
        ('active', s.active::numeric, r.active::numeric), ('trial', s.trial, r.trial), ('paying', s.paying, r.paying),
        ('monthly_milliunits', s.monthly_milliunits, r.monthly_milliunits), ('began', s.began, r.began),
        ('returned', s.returned, r.returned), ('churned', s.churned, r.churned),
        ('trials_started', s.trials_started, r.trials_started),
        ('trials_converted', s.trials_converted, r.trials_converted), ('trials_lost', s.trials_lost, r.trials_lost)
    ) AS figures (figure, summarised, recomputed)
    WHERE COALESCE(summarised, 0) <> COALESCE(recomputed, 0)
    UNION ALL
    SELECT (at AT TIME ZONE 'UTC')::date, bundle_id, environment, currency, figure, sum(GREATEST(difference, 0)),
           sum(GREATEST(-difference, 0))
    FROM perennial.rows_differing() GROUP BY 1, bundle_id, environment, currency, figure
)
SELECT day, bundle_id, currency, figure, summarised, recomputed
FROM reported
WHERE environment = perennial.known_environment(:'environment')
  AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
  AND day < (now() AT TIME ZONE 'UTC')::date
ORDER BY day, bundle_id, currency, figure;
