-- Movements of monthly recurring revenue from one day's end to the next
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, by.
-- new: never paid before, not even for a part of an earlier day. reactivation: paid before, but not the day before.
-- first_full_price: goes on without an offer for the first time; until then it paid only introductory or other offer
-- prices, known or unknown. expansion and contraction: pays more or less than the day before. currency_change: goes on
-- in another currency, or at a price that became known or unknown: out of the one row and into the other, neither
-- expansion nor churn. churn: no longer pays. product_change (by=product): goes on with another product, which takes
-- the former price over; the difference is expansion or contraction of the new one. It is 0 in by=total, and no
-- movement. opening + new + reactivation + first_full_price + expansion + contraction + currency_change +
-- product_change + churn = closing, and closing is mrr's figure of that day. Days without a movement or a change of
-- product have no row; by=product gives every product a row on the others, so that they add up to by=total. Amounts
-- are in units of the currency; a row without currency counts movements at unknown prices. The shares give the sources
-- of the prices of the day's movements. Everything else is as in mrr.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?by} \else \set by total \endif
-- Materialized, because otherwise the planner underestimates the movements of one environment and sorts them all.
WITH moves AS MATERIALIZED (
    SELECT *, kind NOT IN ('product_left', 'product_joined') AS is_movement
    FROM perennial.mrr_movement_days_as_known(:'as_known_at'::timestamptz, :'time_zone')
), wanted AS MATERIALIZED (
    SELECT day, bundle_id, perennial.product_by(:'by', product_id) AS product_id, currency, kind, is_movement, price_basis,
           movements, monthly
    FROM moves
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
      AND (is_movement OR monthly IS NOT NULL)
      AND day <= perennial.last_day(:'until', :'time_zone', :'as_known_at'::timestamptz)
), moved AS (
    SELECT day, bundle_id, product_id, currency, bool_or(kind IS NOT NULL) AS has_moved,
           COALESCE(sum(movements) FILTER (WHERE is_movement), 0) AS movements,
           sum(CASE WHEN kind = 'new' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS new,
           sum(CASE WHEN kind = 'reactivation' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS reactivation,
           sum(CASE WHEN kind = 'expansion' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS expansion,
           sum(CASE WHEN kind = 'first_full_price' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS first_full_price,
           sum(CASE WHEN kind = 'contraction' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS contraction,
           sum(CASE WHEN kind = 'currency_change' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS currency_change,
           sum(CASE WHEN kind IN ('product_left', 'product_joined') THEN monthly WHEN currency IS NOT NULL THEN 0 END)
               AS product_change,
           sum(CASE WHEN kind = 'churn' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS churn,
           sum(monthly) AS net,
           COALESCE(sum(movements) FILTER (WHERE is_movement AND price_basis = 'apple'), 0) AS apple,
           COALESCE(sum(movements) FILTER (WHERE is_movement AND price_basis = 'stated'), 0) AS stated,
           COALESCE(sum(movements) FILTER (WHERE is_movement AND price_basis = 'storefront'), 0) AS storefront,
           COALESCE(sum(movements) FILTER (WHERE is_movement AND price_basis = 'default'), 0) AS "default",
           COALESCE(sum(movements) FILTER (WHERE is_movement AND price_basis = 'unknown'), 0) AS unknown
    FROM (
        SELECT * FROM wanted
        UNION ALL
        -- The other products of the day's currency, so that the products add up to the total.
        SELECT d.day, bundle_id, p.product_id, currency, NULL, false, NULL, 0, 0
        FROM (SELECT DISTINCT day, bundle_id, currency FROM wanted WHERE currency IS NOT NULL) d
        JOIN (SELECT DISTINCT bundle_id, product_id, currency FROM wanted) p USING (bundle_id, currency)) w
    GROUP BY day, bundle_id, product_id, currency
), closed AS (
    SELECT *, sum(net) OVER (PARTITION BY bundle_id, product_id, currency ORDER BY day) AS closing FROM moved
)
SELECT day, bundle_id, NULLIF(product_id, '') AS product_id, currency, movements,
       round((closing - net) / 1000, 3) AS opening,
       round(new / 1000, 3) AS new,
       round(reactivation / 1000, 3) AS reactivation,
       round(first_full_price / 1000, 3) AS first_full_price,
       round(expansion / 1000, 3) AS expansion,
       round(contraction / 1000, 3) AS contraction,
       round(currency_change / 1000, 3) AS currency_change,
       round(product_change / 1000, 3) AS product_change,
       round(churn / 1000, 3) AS churn, round(closing / 1000, 3) AS closing,
       round(100.0 * sum(apple) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS apple_pct,
       round(100.0 * sum(stated) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS stated_pct,
       round(100.0 * sum(storefront) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS storefront_pct,
       round(100.0 * sum("default") OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS default_pct,
       round(100.0 * sum(unknown) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS unknown_pct,
       perennial.is_complete(
           day, 'day', :'time_zone', '-infinity', 'infinity', :'as_known_at'::timestamptz) AS is_complete
FROM closed
WHERE day >= perennial.day_of(:'from', :'time_zone') AND (has_moved OR closing <> 0)
WINDOW app AS (PARTITION BY day, bundle_id)
ORDER BY day, bundle_id, product_id, currency;
