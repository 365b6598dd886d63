-- Days whose summary differs from the full history: no rows when the summaries are right
-- Variables: bundle_id, environment.
-- The overview of the admin page reads sums that are kept up from the feed, and the reports of money rows that are kept
-- with them; this computes both anew from every subscription. It names each day, currency and figure that differs, among
-- the UTC days that are over. Of rows it counts those that only one of the two has. A subscription whose settlement is not
-- in the summaries yet differs for some seconds in the sums, never in the rows; see perennial.summary_now. It reads
-- everything several times: at a million subscriptions that takes minutes.
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
WITH differing AS (
    SELECT occurred_at AS at, bundle_id, environment, COALESCE(currency, '') AS currency, 'revenue_rows' AS figure, is_told
    FROM (
        (SELECT true AS is_told, t.* FROM perennial.revenue_as_known('infinity') t
         EXCEPT ALL SELECT true, h.* FROM perennial.revenue_of('infinity', NULL) h)
        UNION ALL
        (SELECT false, h.* FROM perennial.revenue_of('infinity', NULL) h
         EXCEPT ALL SELECT false, t.* FROM perennial.revenue_as_known('infinity') t)) r
    UNION ALL
    SELECT paying_from AS at, bundle_id, environment, COALESCE(currency, '') AS currency, 'paying_rows' AS figure, is_told
    FROM (
        (SELECT true AS is_told, t.* FROM perennial.paying_as_known('infinity') t
         EXCEPT ALL SELECT true, h.* FROM perennial.paying_of('infinity', NULL) h)
        UNION ALL
        (SELECT false, h.* FROM perennial.paying_of('infinity', NULL) h
         EXCEPT ALL SELECT false, t.* FROM perennial.paying_as_known('infinity') t)) r
    UNION ALL
    SELECT expires_at AS at, bundle_id, environment, '' AS currency, 'renewal_rows' AS figure, is_told
    FROM (
        (SELECT true AS is_told, t.* FROM perennial.renewals_as_known('infinity') t
         EXCEPT ALL SELECT true, h.* FROM perennial.renewals_of('infinity', NULL) h)
        UNION ALL
        (SELECT false, h.* FROM perennial.renewals_of('infinity', NULL) h
         EXCEPT ALL SELECT false, t.* FROM perennial.renewals_as_known('infinity') t)) r
    UNION ALL
    SELECT started_at AS at, bundle_id, environment, '' AS currency, 'trial_rows' AS figure, is_told
    FROM (
        (SELECT true AS is_told, t.* FROM perennial.trial_runs_told('infinity', NULL) t
         EXCEPT ALL SELECT true, h.* FROM perennial.trial_runs_of('infinity', NULL) h)
        UNION ALL
        (SELECT false, h.* FROM perennial.trial_runs_of('infinity', NULL) h
         EXCEPT ALL SELECT false, t.* FROM perennial.trial_runs_told('infinity', NULL) t)) r
), told AS (
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
    SELECT (at AT TIME ZONE 'UTC')::date, bundle_id, environment, currency, figure, count(*) FILTER (WHERE is_told),
           count(*) FILTER (WHERE NOT is_told)
    FROM differing GROUP BY 1, bundle_id, environment, currency, figure
)
SELECT day, bundle_id, currency, figure, summarised, recomputed
FROM told
WHERE environment = :'environment' AND (:'bundle_id' = '' OR bundle_id = :'bundle_id')
  AND day < (now() AT TIME ZONE 'UTC')::date
ORDER BY day, bundle_id, currency, figure;
