-- Verify: returns apps after $1 up to $2 whose sums of the summaries differ from the shares that they sum.
WITH given AS (
    SELECT s.app_id, s.environment, g.day, g.currency,
           sum(g.active) AS active, sum(g.trial) AS trial, sum(g.paying) AS paying,
           sum(g.monthly_milliunits) AS monthly_milliunits, sum(g.began) AS began, sum(g.returned) AS returned,
           sum(g.churned) AS churned, sum(g.trials_started) AS trials_started,
           sum(g.trials_converted) AS trials_converted, sum(g.trials_lost) AS trials_lost
    FROM ledger.summary_share g JOIN ledger.subscription s USING (subscription_id)
    WHERE s.app_id > $1::bigint AND s.app_id <= $2::bigint
    GROUP BY s.app_id, s.environment, g.day, g.currency
), stored AS (
    SELECT d.* FROM ledger.summary_day d WHERE d.app_id > $1::bigint AND d.app_id <= $2::bigint
), differing AS (
    SELECT app_id, environment, day
    FROM stored d FULL JOIN given g USING (app_id, environment, day, currency)
    CROSS JOIN LATERAL (VALUES
        (d.active::numeric, g.active::numeric), (d.trial, g.trial), (d.paying, g.paying),
        (d.monthly_milliunits, g.monthly_milliunits), (d.began, g.began), (d.returned, g.returned),
        (d.churned, g.churned), (d.trials_started, g.trials_started), (d.trials_converted, g.trials_converted),
        (d.trials_lost, g.trials_lost)) AS figures (stored, given)
    WHERE COALESCE(figures.stored, 0) <> COALESCE(figures.given, 0)
)
SELECT a.app_id::bigint AS key, a.bundle_id, min(d.environment::text) AS environment, NULL AS original_transaction_id,
       NULL AS product_id, NULL::bigint AS receipt_id,
       format('the summaries of %s (days that differ: %s) are not the sums of their shares', min(d.day),
              count(DISTINCT d.day)) AS detail
FROM differing d JOIN ledger.app a USING (app_id)
GROUP BY a.app_id, a.bundle_id
ORDER BY a.app_id
