-- Subscriptions that stopped paying, gross and net, by cause
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, by, bucket.
-- A subscription churns on the first day at whose end it no longer pays (see mrr for the definition of paying), after a
-- day at whose end it paid. Its cause is that of the last end of access on that day. voluntary: the customer had turned
-- renewal off. billing: Apple could not charge; it counts from the end of access, even while Apple still retries; a
-- term of payments goes on to count as paying until Apple gives up, at most 95 days, and only then churns, on the day
-- on which its month ended. refund: it was refunded. other: price increase, product withdrawn, taken back in words of
-- Apple's that are not known, unknown. returned paid before, but not the day before. recovered are those of them whom
-- Apple could charge after all, by the rule of renewal_rate; the others had lapsed and came back. gross_churn_pct =
-- churned / paying_at_start; net_churn_pct = (churned - returned) / paying_at_start. paying_at_start + new + returned -
-- churned = paying_at_end. by=product gives a row for each product_id, which add up to those of by=total; switched are
-- those that went on with the product less those that left it for another, so it is part of that sum and 0 in by=total.
-- churned and returned count for the product of the last and the new charge. is_complete: the whole bucket lies between
-- `from` and `until` and was over at as_known_at. A cut bucket counts only the days in between; the day that is not
-- over counts as of now. For money see mrr_churn.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?by} \else \set by total \endif
\if :{?bucket} \else \set bucket month \endif
WITH recovery AS (
    SELECT stream_id, (next_purchased_at AT TIME ZONE :'time_zone')::date AS day
    FROM perennial.renewals_as_known(:'as_known_at'::timestamptz)
    WHERE was_awaited AND next_is_paid
    GROUP BY stream_id, day
-- Materialized, because otherwise the planner underestimates the movements of one environment and sorts them all.
), moves AS MATERIALIZED (
    SELECT m.day, m.bundle_id, m.environment, perennial.product_by(:'by', m.product_id) AS product_id, m.kind,
           m.ended_state, m.ended_reason, r.day IS NOT NULL AS is_recovery, count(*) AS movements
    FROM perennial.mrr_movement_as_known(:'as_known_at'::timestamptz, :'time_zone') m
    LEFT JOIN recovery r ON m.kind = 'reactivation' AND r.stream_id = m.stream_id AND r.day = m.day
    GROUP BY m.day, m.bundle_id, m.environment, 4, m.kind, m.ended_state, m.ended_reason, is_recovery
), moved AS (
    -- The movements before the first requested day form the opening of the first bucket.
    SELECT CASE WHEN day >= perennial.day_of(:'from', :'time_zone') THEN date_trunc(:'bucket', day::timestamp) END AS since,
           bundle_id, product_id, min(date_trunc(:'bucket', day::timestamp)) AS first,
           COALESCE(sum(movements) FILTER (WHERE kind = 'new'), 0) AS new,
           COALESCE(sum(movements) FILTER (WHERE kind = 'reactivation'), 0) AS returned,
           COALESCE(sum(CASE kind WHEN 'product_joined' THEN movements WHEN 'product_left' THEN -movements END), 0)
               AS switched,
           COALESCE(sum(movements) FILTER (WHERE is_recovery), 0) AS recovered,
           COALESCE(sum(movements) FILTER (WHERE kind = 'churn'), 0) AS churned,
           COALESCE(sum(movements) FILTER (WHERE kind = 'churn' AND ended_reason = 'voluntary'), 0) AS voluntary,
           COALESCE(sum(movements) FILTER (
               WHERE kind = 'churn' AND (ended_state = 'billing_retry' OR ended_reason = 'billing_error')), 0) AS billing,
           COALESCE(sum(movements) FILTER (WHERE kind = 'churn' AND ended_reason = 'refund'), 0) AS refund
    FROM moves
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
      AND day <= perennial.last_day(:'until', :'time_zone', :'as_known_at'::timestamptz)
    GROUP BY since, bundle_id, product_id
), buckets AS (
    SELECT bundle_id, product_id, since, opening
    FROM (
        SELECT bundle_id, product_id, min(first) AS first,
               COALESCE(sum(new + returned + switched - churned) FILTER (WHERE since IS NULL), 0) AS opening
        FROM moved GROUP BY bundle_id, product_id) app
    CROSS JOIN LATERAL generate_series(
        GREATEST(app.first, date_trunc(:'bucket', perennial.day_of(:'from', :'time_zone')::timestamp)),
        perennial.last_day(:'until', :'time_zone', :'as_known_at'::timestamptz)::timestamp,
        perennial.bucket_length(:'bucket')) since
), reported AS (
    SELECT since, bundle_id, product_id, COALESCE(new, 0) AS new, COALESCE(returned, 0) AS returned, COALESCE(recovered, 0) AS recovered,
           COALESCE(switched, 0) AS switched,
           COALESCE(churned, 0) AS churned, COALESCE(voluntary, 0) AS voluntary, COALESCE(billing, 0) AS billing,
           COALESCE(refund, 0) AS refund,
           opening + sum(COALESCE(new + returned + switched - churned, 0))
               OVER (PARTITION BY bundle_id, product_id ORDER BY since) AS paying_at_end
    FROM buckets LEFT JOIN moved USING (since, bundle_id, product_id)
), opened AS (
    SELECT *, paying_at_end - new - returned - switched + churned AS paying_at_start FROM reported
)
SELECT since::date AS since, bundle_id, NULLIF(product_id, '') AS product_id, paying_at_start, new, returned, recovered,
       switched, churned, voluntary, billing, refund, churned - voluntary - billing - refund AS other, paying_at_end,
       round(100.0 * churned / NULLIF(paying_at_start, 0), 1) AS gross_churn_pct,
       round(100.0 * (churned - returned) / NULLIF(paying_at_start, 0), 1) AS net_churn_pct,
       perennial.is_complete(
           since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM opened
ORDER BY since, bundle_id, product_id;
