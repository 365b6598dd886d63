-- Cohorts: returns for the subscriptions of app $1 (null: every app) in environment $2 that were first charged in each of the
-- last $3 UTC months how many they are, how many pay now, and their revenue so far by currency, less refunds. From the rows
-- that workers keep (ledger.summary_revenue and ledger.summary_paying).
WITH charged AS MATERIALIZED (
    SELECT r.subscription_id, r.currency, r.amount_milliunits,
           date_trunc('month', min(r.occurred_at) OVER (PARTITION BY r.subscription_id) AT TIME ZONE 'UTC') AS since
    FROM ledger.summary_revenue r
    JOIN ledger.subscription s USING (subscription_id)
    WHERE s.environment = $2::text::ledger.environment AND r.currency IS NOT NULL AND r.occurred_at <= now()
      AND ($1::text IS NULL OR s.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text))
)
SELECT c.since::date::text AS since, c.currency, count(DISTINCT c.subscription_id) AS subscriptions,
       count(DISTINCT c.subscription_id) FILTER (WHERE EXISTS (
           SELECT FROM ledger.summary_paying p
           WHERE p.subscription_id = c.subscription_id AND p.paying_from <= now() AND now() < p.paying_until)) AS paying,
       sum(c.amount_milliunits)::bigint AS amount
FROM charged c
WHERE c.since >= date_trunc('month', now() AT TIME ZONE 'UTC') - ($3::int - 1) * interval '1 month'
GROUP BY c.since, c.currency
ORDER BY c.since DESC, amount DESC, c.currency
