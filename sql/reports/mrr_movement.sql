-- Movements of monthly recurring revenue from one day's end to the next
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone.
-- new: never paid before. reactivation: paid before, but not the day before. expansion and contraction: pays more or
-- less than the day before, also because it now pays in another currency or at an unknown price. churn: no longer pays.
-- opening + new + reactivation + expansion + contraction + churn = closing, and closing is mrr's figure of that day.
-- Days without a movement have no row. Amounts are in units of the currency; a row without currency counts movements at
-- unknown prices. The shares give the sources of the prices of the day's movements. Everything else is as in mrr.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
-- Materialized, because otherwise the planner underestimates the movements of one environment and sorts them all.
WITH moves AS MATERIALIZED (
    SELECT * FROM perennial.mrr_movement_days_as_known(:'as_known_at'::timestamptz, :'time_zone')
), moved AS (
    SELECT day, bundle_id, currency, sum(movements) AS movements,
           sum(CASE WHEN kind = 'new' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS new,
           sum(CASE WHEN kind = 'reactivation' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS reactivation,
           sum(CASE WHEN kind = 'expansion' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS expansion,
           sum(CASE WHEN kind = 'contraction' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS contraction,
           sum(CASE WHEN kind = 'churn' THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS churn,
           sum(monthly) AS net,
           COALESCE(sum(movements) FILTER (WHERE price_basis = 'stated'), 0) AS stated,
           COALESCE(sum(movements) FILTER (WHERE price_basis = 'storefront'), 0) AS storefront,
           COALESCE(sum(movements) FILTER (WHERE price_basis = 'default'), 0) AS "default",
           COALESCE(sum(movements) FILTER (WHERE price_basis = 'unknown'), 0) AS unknown
    FROM moves
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
      AND day < (LEAST(:'as_known_at'::timestamptz, now()) AT TIME ZONE :'time_zone')::date
    GROUP BY day, bundle_id, currency
), closed AS (
    SELECT *, sum(net) OVER (PARTITION BY bundle_id, currency ORDER BY day) AS closing FROM moved
)
SELECT day, bundle_id, currency, movements, round((closing - net) / 1000, 3) AS opening,
       round(new / 1000, 3) AS new,
       round(reactivation / 1000, 3) AS reactivation,
       round(expansion / 1000, 3) AS expansion,
       round(contraction / 1000, 3) AS contraction,
       round(churn / 1000, 3) AS churn, round(closing / 1000, 3) AS closing,
       round(100.0 * sum(stated) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS stated_pct,
       round(100.0 * sum(storefront) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS storefront_pct,
       round(100.0 * sum("default") OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS default_pct,
       round(100.0 * sum(unknown) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS unknown_pct
FROM closed
WHERE day >= perennial.day_of(:'from', :'time_zone') AND day < perennial.day_of(:'until', :'time_zone')
WINDOW app AS (PARTITION BY day, bundle_id)
ORDER BY day, bundle_id, currency;
