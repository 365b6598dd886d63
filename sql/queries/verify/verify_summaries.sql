-- Verify: returns subscriptions after $1 up to $2 whose shares of the summaries, for past days, or whose rows for
-- reports differ from their history. Leaves out those written since their last summary.
WITH reported AS MATERIALIZED (
    SELECT COALESCE(array_agg(k.stream_id), '{}') AS streams FROM perennial.summarised k
    WHERE k.stream_id > $1::bigint AND k.stream_id <= $2::bigint
), stored AS MATERIALIZED (
    SELECT g.* FROM ledger.summary_share g
    WHERE g.subscription_id = ANY ((SELECT streams FROM reported)::bigint[])
), given AS MATERIALIZED (
    SELECT h.* FROM ledger.shares_of((SELECT streams FROM reported)) h
), differing AS (
    SELECT d.subscription_id,
           format('the summaries have another share of %s (days that differ: %s) than its history', min(d.day),
                  count(DISTINCT d.day)) AS detail
    FROM ((TABLE stored EXCEPT TABLE given) UNION ALL (TABLE given EXCEPT TABLE stored)) d
    WHERE d.day < (now() AT TIME ZONE 'UTC')::date
    GROUP BY d.subscription_id
    UNION ALL
    SELECT r.stream_id,
           format('the summaries have other %s (rows that differ: %s) than its history',
                  replace(min(r.figure), '_', ' '), sum(abs(r.difference)))
    FROM ledger.rows_differing_of((SELECT streams FROM reported)) r
    GROUP BY r.stream_id
)
SELECT s.subscription_id AS key, a.bundle_id, s.environment::text AS environment, s.original_transaction_id,
       NULL AS product_id, NULL::bigint AS receipt_id, min(d.detail) AS detail
FROM differing d
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
GROUP BY s.subscription_id, a.bundle_id, s.environment, s.original_transaction_id
ORDER BY s.subscription_id
