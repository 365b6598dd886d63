-- Subscriptions that stopped paying, gross and net, by cause
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, bucket.
-- A subscription churns on the first day at whose end it does not pay any more (see mrr for who pays) after one at
-- whose end it did. voluntary: the customer had turned renewal off; billing: Apple could not charge, from when access
-- ended, even while Apple still tries; refund: it was refunded; other: price increase, product withdrawn, unknown.
-- returned paid before, but not the day before, among them those whom Apple could charge after all. gross_churn_pct =
-- churned / paying_at_start; net_churn_pct = (churned - returned) / paying_at_start. paying_at_start + new + returned
-- - churned = paying_at_end. is_complete says that the bucket was over at as_known_at. For money see mrr_churn.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?bucket} \else \set bucket month \endif
-- Materialized, else the planner takes what one environment moved for little and sorts it all.
WITH moves AS MATERIALIZED (
    SELECT * FROM perennial.mrr_movement_days_as_known(:'as_known_at'::timestamptz, :'time_zone')
), moved AS (
    SELECT date_trunc(:'bucket', day::timestamp) AS since, bundle_id,
           sum(movements) FILTER (WHERE kind = 'new') AS new,
           sum(movements) FILTER (WHERE kind = 'reactivation') AS returned,
           sum(movements) FILTER (WHERE kind = 'churn') AS churned,
           sum(movements) FILTER (WHERE kind = 'churn' AND ended_reason = 'voluntary') AS voluntary,
           sum(movements) FILTER (WHERE kind = 'churn' AND (ended_state = 'billing_retry' OR ended_reason = 'billing_error')) AS billing,
           sum(movements) FILTER (WHERE kind = 'churn' AND ended_reason = 'refund') AS refund
    FROM moves
    WHERE environment = :'environment' AND (:'bundle_id' = '' OR bundle_id = :'bundle_id')
      AND day < (LEAST(:'as_known_at'::timestamptz, now()) AT TIME ZONE :'time_zone')::date
    GROUP BY since, bundle_id
), buckets AS (
    SELECT bundle_id, since
    FROM (SELECT bundle_id, min(since) AS first FROM moved GROUP BY bundle_id) first
    CROSS JOIN LATERAL generate_series(
        first.first, (LEAST(:'as_known_at'::timestamptz, now()) AT TIME ZONE :'time_zone')::date - interval '1 day',
        ('1 ' || :'bucket')::interval) since
), told AS (
    SELECT since, bundle_id, COALESCE(new, 0) AS new, COALESCE(returned, 0) AS returned, COALESCE(churned, 0) AS churned,
           COALESCE(voluntary, 0) AS voluntary, COALESCE(billing, 0) AS billing, COALESCE(refund, 0) AS refund,
           sum(COALESCE(new, 0) + COALESCE(returned, 0) - COALESCE(churned, 0)) OVER (PARTITION BY bundle_id ORDER BY since) AS paying_at_end
    FROM buckets LEFT JOIN moved USING (since, bundle_id)
), opened AS (
    SELECT *, paying_at_end - new - returned + churned AS paying_at_start FROM told
)
SELECT since::date AS since, bundle_id, paying_at_start, new, returned, churned, voluntary, billing, refund,
       churned - voluntary - billing - refund AS other, paying_at_end,
       round(100.0 * churned / NULLIF(paying_at_start, 0), 1) AS gross_churn_pct,
       round(100.0 * (churned - returned) / NULLIF(paying_at_start, 0), 1) AS net_churn_pct,
       since + ('1 ' || :'bucket')::interval <= LEAST(:'as_known_at'::timestamptz, now()) AT TIME ZONE :'time_zone'
           AS is_complete
FROM opened
WHERE since::date >= :'from'::date AND since::date < :'until'::date
ORDER BY since, bundle_id;
