-- Net revenue of subscriptions so far, by the bucket in which they first paid
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, by, bucket.
-- Net revenue (charges, refunds, prorations; see revenue) of subscriptions until as_known_at, by the bucket in which
-- they first paid, as in retention. subscriptions is the whole cohort, whatever its currencies. net_each = net /
-- subscriptions, so that a cohort's rows in one currency add up to the revenue of an average subscription. The figures
-- are realised, never forecast: age_days is the time since the end of the cohort's bucket. Trials that never
-- converted, charges that Apple took back before they gave access, and one-time purchases belong to no cohort. Amounts
-- are in units of the currency; a row without currency counts movements at unknown prices. The shares give the sources
-- of the prices of the cohort's movements. by=product gives rows for each product_id of a first charge, which include
-- what those subscriptions paid for other products later; they add up to by=total, but for net_each and proceeds_each.
-- is_complete: the whole bucket lies between `from` and `until` and was over at as_known_at. A cut bucket counts only
-- the subscriptions that began to pay in between.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?by} \else \set by total \endif
\if :{?bucket} \else \set bucket month \endif
WITH clock AS (
    SELECT LEAST(:'as_known_at'::timestamptz, now()) AS at
), cohort AS (
    SELECT *, date_trunc(:'bucket', began_at AT TIME ZONE :'time_zone') AS since
    FROM (
        SELECT stream_id, bundle_id, min(paying_from) AS began_at,
               perennial.product_by(:'by', (array_agg(product_id ORDER BY paying_from))[1]) AS product_id
        FROM perennial.paying_as_known(:'as_known_at'::timestamptz)
        CROSS JOIN clock
        WHERE environment = perennial.known_environment(:'environment')
          AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id')) AND paying_from <= clock.at
        GROUP BY stream_id, bundle_id) b
    -- One expression, because otherwise the planner underestimates the cohorts.
    WHERE COALESCE(began_at >= perennial.instant(:'from', :'time_zone')
               AND began_at < perennial.instant(:'until', :'time_zone'), false)
), brought AS (
    SELECT stream_id, currency, count(*) AS movements, count(*) FILTER (WHERE kind = 'charge') AS charges,
           sum(amount_milliunits) AS net, sum(proceeds_milliunits) AS proceeds,
           count(*) FILTER (WHERE price_basis = 'apple') AS apple,
           count(*) FILTER (WHERE price_basis = 'stated') AS stated,
           count(*) FILTER (WHERE price_basis = 'storefront') AS storefront,
           count(*) FILTER (WHERE price_basis = 'default') AS "default",
           count(*) FILTER (WHERE price_basis = 'unknown') AS unknown
    FROM perennial.revenue_as_known(:'as_known_at'::timestamptz)
    CROSS JOIN clock
    WHERE charge_kind = 'subscription' AND environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id')) AND occurred_at <= clock.at
    GROUP BY stream_id, currency
), moved AS (
    SELECT since, bundle_id, product_id, COALESCE(currency, '') AS currency, sum(movements) AS movements,
           sum(charges) AS charges, sum(net) AS net, sum(proceeds) AS proceeds, sum(apple) AS apple, sum(stated) AS stated,
           sum(storefront) AS storefront, sum("default") AS "default", sum(unknown) AS unknown
    FROM cohort JOIN brought USING (stream_id) GROUP BY since, bundle_id, product_id, 4
), reported AS (
    -- Each product has a row for each currency of the cohort, so that the products add up to the total.
    SELECT since, bundle_id, product_id, NULLIF(currency, '') AS currency, subscriptions, movements,
           COALESCE(charges, 0) AS charges, CASE WHEN currency <> '' THEN COALESCE(net, 0) END AS net,
           CASE WHEN currency <> '' THEN COALESCE(proceeds, 0) END AS proceeds, apple, stated, storefront, "default",
           unknown
    FROM (SELECT since, bundle_id, product_id, count(*) AS subscriptions FROM cohort GROUP BY since, bundle_id, product_id) size
    JOIN (SELECT DISTINCT since, bundle_id, currency FROM moved) spent USING (since, bundle_id)
    LEFT JOIN moved USING (since, bundle_id, product_id, currency)
)
SELECT since::date AS since, bundle_id, NULLIF(product_id, '') AS product_id, subscriptions, currency, charges,
       round(net / 1000, 3) AS net,
       round(net / subscriptions / 1000, 3) AS net_each, round(proceeds / 1000, 3) AS proceeds,
       round(proceeds / subscriptions / 1000, 3) AS proceeds_each,
       GREATEST(0, (LEAST(:'as_known_at'::timestamptz, now()) AT TIME ZONE :'time_zone')::date
           - (since + perennial.bucket_length(:'bucket'))::date) AS age_days,
       round(100.0 * sum(apple) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS apple_pct,
       round(100.0 * sum(stated) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS stated_pct,
       round(100.0 * sum(storefront) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS storefront_pct,
       round(100.0 * sum("default") OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS default_pct,
       round(100.0 * sum(unknown) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS unknown_pct,
       perennial.is_complete(
           since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM reported
WINDOW app AS (PARTITION BY since, bundle_id)
ORDER BY since, bundle_id, product_id, currency;
