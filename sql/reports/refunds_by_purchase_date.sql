-- Refunds by the date of the refunded purchase, counted and in money
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, bucket.
-- Of the charges of a bucket, the number refunded until as_known_at. refunded_pct = refunds / charges;
-- money_refunded_pct = refunded / charged. Refunds arrive for months: is_mature means that the bucket has been over for
-- 90 days; before that the shares will rise. For the definitions of charge and refund see revenue and
-- refunds_by_refund_date. Amounts are in units of the currency; a row without currency counts charges at unknown
-- prices. The shares give the sources of the prices of all the app's charges in the bucket, and are the same in each of
-- its rows. is_complete: the whole bucket lies between `from` and `until` and was over at as_known_at. A cut bucket
-- counts only the charges in between; the day that is not over counts so far.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?bucket} \else \set bucket month \endif
WITH bought AS (
    SELECT date_trunc(:'bucket', purchased_at AT TIME ZONE :'time_zone') AS since, bundle_id, product_id, currency,
           count(*) FILTER (WHERE kind = 'charge') AS charges, count(*) FILTER (WHERE kind = 'refund') AS refunds,
           sum(amount_milliunits) FILTER (WHERE kind = 'charge') AS charged,
           COALESCE(sum(amount_milliunits) FILTER (WHERE kind = 'refund'), 0) AS refunded,
           count(*) FILTER (WHERE kind = 'charge' AND price_basis = 'apple') AS apple,
           count(*) FILTER (WHERE kind = 'charge' AND price_basis = 'stated') AS stated,
           count(*) FILTER (WHERE kind = 'charge' AND price_basis = 'storefront') AS storefront,
           count(*) FILTER (WHERE kind = 'charge' AND price_basis = 'default') AS "default",
           count(*) FILTER (WHERE kind = 'charge' AND price_basis = 'unknown') AS unknown
    FROM perennial.revenue_as_known(:'as_known_at'::timestamptz)
    WHERE kind IN ('charge', 'refund') AND environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
      AND occurred_at <= LEAST(:'as_known_at'::timestamptz, now())
      AND purchased_at >= perennial.instant(:'from', :'time_zone')
      AND purchased_at < LEAST(perennial.instant(:'until', :'time_zone'), :'as_known_at'::timestamptz, now())
    GROUP BY since, bundle_id, product_id, currency
)
SELECT since::date AS since, bundle_id, product_id, currency, charges, refunds,
       round(100.0 * refunds / NULLIF(charges, 0), 1) AS refunded_pct, round(charged / 1000, 3) AS charged,
       CASE WHEN currency IS NOT NULL THEN round(refunded / 1000, 3) END AS refunded,
       round(-100 * refunded / NULLIF(charged, 0), 1) AS money_refunded_pct,
       since + perennial.bucket_length(:'bucket') + interval '90 days'
           <= LEAST(:'as_known_at'::timestamptz, now()) AT TIME ZONE :'time_zone' AS is_mature,
       round(100.0 * sum(apple) OVER app / NULLIF(sum(charges) OVER app, 0), 1) AS apple_pct,
       round(100.0 * sum(stated) OVER app / NULLIF(sum(charges) OVER app, 0), 1) AS stated_pct,
       round(100.0 * sum(storefront) OVER app / NULLIF(sum(charges) OVER app, 0), 1) AS storefront_pct,
       round(100.0 * sum("default") OVER app / NULLIF(sum(charges) OVER app, 0), 1) AS default_pct,
       round(100.0 * sum(unknown) OVER app / NULLIF(sum(charges) OVER app, 0), 1) AS unknown_pct,
       perennial.is_complete(
           since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM bought
WINDOW app AS (PARTITION BY since, bundle_id)
ORDER BY since, bundle_id, product_id, currency;
