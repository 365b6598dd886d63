-- Retention: returns for the subscriptions of app $1 (null: every app) in environment $2 that began to pay in each of the
-- last $3 UTC months how many reached each monthly anniversary with a day's grace, and how many paid then. Month 0 has all of
-- them; later ones come where one reached them. From the rows that workers keep (ledger.summary_paying).
WITH paying AS MATERIALIZED (
    SELECT p.subscription_id, p.paying_from, p.paying_until,
           min(p.paying_from) OVER (PARTITION BY p.subscription_id) AS began_at
    FROM ledger.summary_paying p
    JOIN ledger.subscription s USING (subscription_id)
    WHERE s.environment = $2::text::ledger.environment
      AND ($1::text IS NULL OR s.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text))
      AND p.paying_from <= now()
), cohort AS MATERIALIZED (
    SELECT p.*, date_trunc('month', p.began_at AT TIME ZONE 'UTC') AS since
    FROM paying p
    WHERE p.began_at >= (date_trunc('month', now() AT TIME ZONE 'UTC') - ($3::int - 1) * interval '1 month') AT TIME ZONE 'UTC'
)
SELECT c.since::date::text AS since, n.month, count(DISTINCT c.subscription_id) AS reached,
       count(DISTINCT c.subscription_id) FILTER (WHERE n.month = 0 OR c.paying_from <= a.at AND a.at < c.paying_until) AS retained
FROM cohort c
CROSS JOIN generate_series(0, $3::int) n(month)
CROSS JOIN LATERAL (
    SELECT (c.began_at AT TIME ZONE 'UTC' + n.month * interval '1 month' + interval '1 day') AT TIME ZONE 'UTC' AS at) a
WHERE n.month = 0 OR a.at <= now()
GROUP BY c.since, n.month
ORDER BY c.since, n.month
