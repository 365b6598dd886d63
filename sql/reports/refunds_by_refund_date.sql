-- Refunds by the date of the refund, counted and in money
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, bucket.
-- A refund is a charge that Apple cancelled (cancellation_date), of a subscription's period or of a one-time purchase,
-- on the day Apple gave. A period replaced by an upgrade is no refund (see revenue: prorations), nor is a trial or a
-- family share. A refund counts with the share of the price that Apple states in a signed transaction, else with the
-- whole price. amount is in units of the currency and negative; a row without currency counts refunds at unknown prices.
-- The shares give the sources of the prices of all the app's refunds in the bucket, and are the same in each of its rows.
-- is_complete: the whole bucket lies between `from` and `until` and was over at as_known_at. A cut bucket counts only the
-- refunds in between; the day that is not over counts so far.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?bucket} \else \set bucket month \endif
WITH refund AS (
    SELECT date_trunc(:'bucket', occurred_at AT TIME ZONE :'time_zone')::date AS since, bundle_id, product_id, currency,
           count(*) AS refunds, count(*) FILTER (WHERE charge_kind = 'subscription') AS of_subscriptions,
           count(*) FILTER (WHERE charge_kind = 'purchase') AS of_purchases, sum(amount_milliunits) AS amount,
           count(*) FILTER (WHERE price_basis = 'apple') AS apple,
           count(*) FILTER (WHERE price_basis = 'stated') AS stated,
           count(*) FILTER (WHERE price_basis = 'storefront') AS storefront,
           count(*) FILTER (WHERE price_basis = 'default') AS "default",
           count(*) FILTER (WHERE price_basis = 'unknown') AS unknown
    FROM perennial.revenue_as_known(:'as_known_at'::timestamptz)
    WHERE kind = 'refund' AND environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
      AND occurred_at >= perennial.instant(:'from', :'time_zone')
      AND occurred_at < LEAST(perennial.instant(:'until', :'time_zone'), :'as_known_at'::timestamptz, now())
    GROUP BY since, bundle_id, product_id, currency
)
SELECT since, bundle_id, product_id, currency, refunds, of_subscriptions, of_purchases, round(amount / 1000, 3) AS amount,
       round(100.0 * sum(apple) OVER app / NULLIF(sum(refunds) OVER app, 0), 1) AS apple_pct,
       round(100.0 * sum(stated) OVER app / NULLIF(sum(refunds) OVER app, 0), 1) AS stated_pct,
       round(100.0 * sum(storefront) OVER app / NULLIF(sum(refunds) OVER app, 0), 1) AS storefront_pct,
       round(100.0 * sum("default") OVER app / NULLIF(sum(refunds) OVER app, 0), 1) AS default_pct,
       round(100.0 * sum(unknown) OVER app / NULLIF(sum(refunds) OVER app, 0), 1) AS unknown_pct,
       perennial.is_complete(
           since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM refund
WINDOW app AS (PARTITION BY since, bundle_id)
ORDER BY since, bundle_id, product_id, currency;
