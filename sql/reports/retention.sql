-- Share of the subscriptions that began to pay in a bucket and still pay months later
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, by, bucket, months.
-- A subscription belongs to the cohort in which it first paid. It is retained after n months if it pays one day after
-- the n-th monthly anniversary (the day allows for late renewals and the hour of daylight saving); see mrr for the
-- definition of paying, and a term whose failed payment Apple still tries is retained. A subscription that lapsed and
-- came back is retained again. subscriptions is the whole cohort, reached those whose anniversary has come,
-- retained_pct = retained / reached. is_mature: the cohort is complete and all of it has reached the month; a younger
-- row can still change. months (12) is the number of months covered. by=product gives a row for each product_id that
-- the subscriptions first paid for, whatever they paid for later; those rows add up to by=total, so a product has a row
-- for a month that only another one has reached. is_complete: the whole bucket lies between `from` and `until` and was
-- over at as_known_at. A cut bucket counts only the subscriptions that began to pay in between.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?by} \else \set by total \endif
\if :{?bucket} \else \set bucket month \endif
\if :{?months} \else \set months 12 \endif
WITH clock AS (
    SELECT LEAST(:'as_known_at'::timestamptz, now()) AS at
), paying AS (
    SELECT p.*, date_trunc(:'bucket', began_at AT TIME ZONE :'time_zone') AS since,
           -- Anniversaries up to the clock's instant have come: those before the next microsecond.
           perennial.anniversaries(began_at, paying_from) AS before_it,
           perennial.anniversaries(began_at, LEAST(paying_until, clock.at + interval '1 microsecond')) AS until_end,
           CASE WHEN paying_from = began_at THEN
               perennial.anniversaries(began_at, clock.at + interval '1 microsecond') END AS reached
    FROM (
        SELECT bundle_id, paying_from, paying_until, min(paying_from) OVER (PARTITION BY stream_id) AS began_at,
               perennial.product_by(
                   :'by', first_value(product_id) OVER (PARTITION BY stream_id ORDER BY paying_from)) AS product_id
        FROM perennial.paying_as_known(:'as_known_at'::timestamptz)
        WHERE environment = perennial.known_environment(:'environment')
          AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))) p
    CROSS JOIN clock
    WHERE paying_from <= clock.at
), counted AS (
    SELECT since, bundle_id, product_id, before_it, until_end, reached, count(*) AS stretches
    FROM paying
    -- One expression, because otherwise the planner underestimates the cohorts.
    WHERE COALESCE(began_at >= perennial.instant(:'from', :'time_zone')
               AND began_at < perennial.instant(:'until', :'time_zone'), false)
    GROUP BY since, bundle_id, product_id, before_it, until_end, reached
), reported AS (
    SELECT since, bundle_id, product_id, month, sum(stretches) FILTER (WHERE reached IS NOT NULL) AS subscriptions,
           COALESCE(sum(stretches) FILTER (WHERE reached >= month), 0) AS reached,
           max(max(reached)) OVER (PARTITION BY since, bundle_id) AS reached_by_any,
           COALESCE(sum(stretches) FILTER (WHERE before_it < month AND month <= until_end), 0) AS retained
    FROM counted CROSS JOIN generate_series(1, :'months'::int) month
    GROUP BY since, bundle_id, product_id, month
)
SELECT since::date AS since, bundle_id, NULLIF(product_id, '') AS product_id, month, subscriptions, reached, retained,
       round(100.0 * retained / NULLIF(reached, 0), 1) AS retained_pct,
       reached = subscriptions
           AND since + perennial.bucket_length(:'bucket') <= (SELECT at FROM clock) AT TIME ZONE :'time_zone' AS is_mature,
       perennial.is_complete(
           since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM reported
WHERE month <= reached_by_any
ORDER BY since, bundle_id, product_id, month;
