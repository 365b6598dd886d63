-- Charges, refunds, net revenue and proceeds, with Apple's commission and its reason
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, bucket.
-- A charge is a paid period of a subscription or a one-time purchase, on its purchase date; trials and family shares
-- are not charges. A refund counts on the day Apple gave it, with the share of the price that Apple states, else with
-- the whole price. A proration is Apple's repayment for a period that an upgrade or crossgrade replaced: the share that
-- Apple states, else that of its remaining time; of a payment of a term it is not known where Apple states none. net =
-- charged + refunded + prorated. proceeds = net less Apple's commission: 15 % in the Small Business Program
-- (small_business) or after a year of paid service of the subscription (after_one_year), else 30 % (standard); 60 days
-- without paid service restart the year. A refund is repaid at the rate of its charge. Prices are what customers pay:
-- taxes, which Apple deducts first where required, are unknown here. Amounts are in units of the currency, one row for
-- each; a row without currency counts movements at unknown prices. The shares give the sources of the prices of all the
-- app's rows of the bucket. is_complete: the whole bucket lies between `from` and `until` and was over at as_known_at.
-- A cut bucket counts only the movements in between; the day that is not over counts so far.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?bucket} \else \set bucket month \endif
WITH moved AS (
    SELECT date_trunc(:'bucket', occurred_at AT TIME ZONE :'time_zone')::date AS since, bundle_id, product_id, currency,
           commission_percent, commission_reason, count(*) AS movements, count(*) FILTER (WHERE kind = 'charge') AS charges,
           count(*) FILTER (WHERE kind = 'refund') AS refunds, count(*) FILTER (WHERE kind = 'proration') AS prorations,
           sum(amount_milliunits) FILTER (WHERE kind = 'charge') AS charged,
           sum(amount_milliunits) FILTER (WHERE kind = 'refund') AS refunded,
           sum(amount_milliunits) FILTER (WHERE kind = 'proration') AS prorated,
           sum(amount_milliunits) AS net, sum(proceeds_milliunits) AS proceeds,
           count(*) FILTER (WHERE price_basis = 'apple') AS apple,
           count(*) FILTER (WHERE price_basis = 'stated') AS stated,
           count(*) FILTER (WHERE price_basis = 'storefront') AS storefront,
           count(*) FILTER (WHERE price_basis = 'default') AS "default",
           count(*) FILTER (WHERE price_basis = 'unknown') AS unknown
    FROM perennial.revenue_as_known(:'as_known_at'::timestamptz)
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
      AND occurred_at >= perennial.instant(:'from', :'time_zone')
      AND occurred_at < LEAST(perennial.instant(:'until', :'time_zone'), :'as_known_at'::timestamptz, now())
    GROUP BY since, bundle_id, product_id, currency, commission_percent, commission_reason
)
SELECT since, bundle_id, product_id, currency, commission_percent, commission_reason, charges, refunds, prorations,
       CASE WHEN currency IS NOT NULL THEN round(COALESCE(charged, 0) / 1000, 3) END AS charged,
       CASE WHEN currency IS NOT NULL THEN round(COALESCE(refunded, 0) / 1000, 3) END AS refunded,
       CASE WHEN currency IS NOT NULL THEN round(COALESCE(prorated, 0) / 1000, 3) END AS prorated,
       round(net / 1000, 3) AS net, round(proceeds / 1000, 3) AS proceeds,
       round(100.0 * sum(apple) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS apple_pct,
       round(100.0 * sum(stated) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS stated_pct,
       round(100.0 * sum(storefront) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS storefront_pct,
       round(100.0 * sum("default") OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS default_pct,
       round(100.0 * sum(unknown) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS unknown_pct,
       perennial.is_complete(
           since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM moved
WINDOW app AS (PARTITION BY since, bundle_id)
ORDER BY since, bundle_id, product_id, currency, commission_percent, commission_reason;
