-- Verify: returns subscriptions after $1 up to $2 whose shares of the summaries, for past days, differ from their
-- history. Leaves out those written since their last summary.
WITH reported AS MATERIALIZED (
    SELECT COALESCE(array_agg(k.stream_id), '{}') AS streams FROM perennial.summarised k
    WHERE k.stream_id > $1::bigint AND k.stream_id <= $2::bigint
), stored AS MATERIALIZED (
    SELECT g.* FROM ledger.summary_share g
    WHERE g.subscription_id = ANY ((SELECT streams FROM reported)::bigint[])
), given AS MATERIALIZED (
    SELECT h.* FROM perennial.shares_of((SELECT streams FROM reported)) h
), differing AS (
    SELECT d.subscription_id, min(d.day) AS first_day, count(DISTINCT d.day) AS days
    FROM ((TABLE stored EXCEPT TABLE given) UNION ALL (TABLE given EXCEPT TABLE stored)) d
    WHERE d.day < (now() AT TIME ZONE 'UTC')::date
    GROUP BY d.subscription_id
)
SELECT s.subscription_id AS key, a.bundle_id, s.environment::text AS environment, s.original_transaction_id,
       NULL AS product_id, NULL::bigint AS receipt_id,
       format('the summaries tell another share of %s (days that differ: %s) than its history', d.first_day, d.days) AS detail
FROM differing d
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
ORDER BY s.subscription_id
