-- For metrics: each app's and environment's figures at the end of the last whole UTC day, from the sums of the summaries, and
-- how many subscriptions are in grace and in billing retry now, from the timelines that say so. `mrr` has a currency.
WITH reported AS (
    SELECT d.app_id, d.environment, d.currency, sum(d.active) AS active, sum(d.paying) AS paying, sum(d.trial) AS trial,
           sum(d.monthly_milliunits) AS monthly
    FROM ledger.summary_day d
    WHERE d.day < (now() AT TIME ZONE 'UTC')::date
    GROUP BY d.app_id, d.environment, d.currency
), unpaid AS MATERIALIZED (
    SELECT s.app_id, s.environment, c.state::text AS state, count(*) AS subscriptions
    FROM ledger.subscription_span c JOIN ledger.subscription s USING (subscription_id)
    WHERE upper_inf(c.known) AND c.state IN ('grace_period', 'billing_retry')
      AND COALESCE(upper(c.valid), 'infinity') > now() AND lower(c.valid) <= now()
    GROUP BY s.app_id, s.environment, c.state
), figure AS (
    SELECT app_id, environment, 'entitled' AS figure, '' AS currency, sum(active) AS value FROM reported GROUP BY 1, 2
    UNION ALL SELECT app_id, environment, 'paying', '', sum(paying) FROM reported GROUP BY 1, 2
    UNION ALL SELECT app_id, environment, 'trial', '', sum(trial) FROM reported GROUP BY 1, 2
    UNION ALL SELECT app_id, environment, 'mrr', currency, monthly / 1000.0 FROM reported WHERE currency <> ''
    UNION ALL
    SELECT r.app_id, r.environment, w.state, '', COALESCE(u.subscriptions, 0)
    FROM (SELECT app_id, environment FROM reported UNION SELECT app_id, environment FROM unpaid) r
    CROSS JOIN (VALUES ('grace_period'), ('billing_retry')) w(state)
    LEFT JOIN unpaid u ON u.app_id = r.app_id AND u.environment = r.environment AND u.state = w.state
)
SELECT a.bundle_id, f.environment::text AS environment, f.figure, f.currency, f.value::float8 AS value
FROM figure f JOIN ledger.app a USING (app_id)
ORDER BY a.bundle_id, f.environment, f.figure, f.currency
