-- Lost monthly recurring revenue, gross and net, by cause
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, by, bucket.
-- The movements of mrr_movement by bucket, currency and, with by=product, product: every product of a bucket with
-- movements has a row, and they add up to by=total. voluntary, billing and refund are parts of churn, defined as in
-- the report churn; the rest of it is other. gross_churn_pct = (churn + contraction) / opening, net_churn_pct = (churn
-- + contraction + expansion + reactivation) / opening; both are positive when revenue was lost. The shares give the
-- sources of the prices of the bucket's movements. Unknown prices are in no amount. is_complete: the whole bucket lies
-- between `from` and `until` and was over at as_known_at. A cut bucket counts only the days in between.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?by} \else \set by total \endif
\if :{?bucket} \else \set bucket month \endif
-- Materialized, because otherwise the planner underestimates the movements of one environment and sorts them all.
WITH moves AS MATERIALIZED (
    SELECT *, kind NOT IN ('product_left', 'product_joined') AS is_movement
    FROM perennial.mrr_movement_days_as_known(:'as_known_at'::timestamptz, :'time_zone')
), wanted AS MATERIALIZED (
    -- The movements before the first requested day form the opening of the first bucket.
    SELECT CASE WHEN day >= perennial.day_of(:'from', :'time_zone') THEN date_trunc(:'bucket', day::timestamp) END AS since,
           bundle_id, perennial.product_by(:'by', product_id) AS product_id, currency, kind, is_movement, price_basis,
           ended_state, ended_reason, movements, monthly
    FROM moves
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
      AND (is_movement OR monthly IS NOT NULL)
      AND day <= perennial.last_day(:'until', :'time_zone', :'as_known_at'::timestamptz)
), moved AS (
    SELECT since, bundle_id, product_id, currency, bool_or(kind IS NOT NULL) AS has_moved,
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
           sum(CASE WHEN kind = 'churn' AND ended_reason = 'voluntary' THEN monthly
                    WHEN currency IS NOT NULL THEN 0 END) AS voluntary,
           sum(CASE WHEN kind = 'churn' AND (ended_state = 'billing_retry' OR ended_reason = 'billing_error')
                    THEN monthly WHEN currency IS NOT NULL THEN 0 END) AS billing,
           sum(CASE WHEN kind = 'churn' AND ended_reason = 'refund' THEN monthly
                    WHEN currency IS NOT NULL THEN 0 END) AS refund,
           sum(monthly) AS net,
           COALESCE(sum(movements) FILTER (WHERE is_movement AND price_basis = 'apple'), 0) AS apple,
           COALESCE(sum(movements) FILTER (WHERE is_movement AND price_basis = 'stated'), 0) AS stated,
           COALESCE(sum(movements) FILTER (WHERE is_movement AND price_basis = 'storefront'), 0) AS storefront,
           COALESCE(sum(movements) FILTER (WHERE is_movement AND price_basis = 'default'), 0) AS "default",
           COALESCE(sum(movements) FILTER (WHERE is_movement AND price_basis = 'unknown'), 0) AS unknown
    FROM (
        SELECT * FROM wanted
        UNION ALL
        -- The other products of the bucket's currency, so that the products add up to the total.
        SELECT b.since, bundle_id, p.product_id, currency, NULL, false, NULL, NULL, NULL, 0, 0
        FROM (SELECT DISTINCT since, bundle_id, currency FROM wanted WHERE currency IS NOT NULL AND since IS NOT NULL) b
        JOIN (SELECT DISTINCT bundle_id, product_id, currency FROM wanted) p USING (bundle_id, currency)) w
    GROUP BY since, bundle_id, product_id, currency
), closed AS (
    SELECT *, sum(net) OVER (PARTITION BY bundle_id, product_id, currency ORDER BY since NULLS FIRST) - net AS opening
    FROM moved
)
SELECT since::date AS since, bundle_id, NULLIF(product_id, '') AS product_id, currency, movements,
       round(opening / 1000, 3) AS opening, round(new / 1000, 3) AS new, round(reactivation / 1000, 3) AS reactivation,
       round(first_full_price / 1000, 3) AS first_full_price, round(expansion / 1000, 3) AS expansion,
       round(contraction / 1000, 3) AS contraction, round(currency_change / 1000, 3) AS currency_change,
       round(product_change / 1000, 3) AS product_change, round(churn / 1000, 3) AS churn,
       round(voluntary / 1000, 3) AS voluntary, round(billing / 1000, 3) AS billing,
       round(refund / 1000, 3) AS refund, round((opening + net) / 1000, 3) AS closing,
       round(-100 * (churn + contraction) / NULLIF(opening, 0), 1) AS gross_churn_pct,
       round(-100 * (churn + contraction + expansion + reactivation) / NULLIF(opening, 0), 1) AS net_churn_pct,
       round(100.0 * sum(apple) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS apple_pct,
       round(100.0 * sum(stated) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS stated_pct,
       round(100.0 * sum(storefront) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS storefront_pct,
       round(100.0 * sum("default") OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS default_pct,
       round(100.0 * sum(unknown) OVER app / NULLIF(sum(movements) OVER app, 0), 1) AS unknown_pct,
       perennial.is_complete(
           since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM closed
WHERE since IS NOT NULL AND (has_moved OR opening <> 0)
WINDOW app AS (PARTITION BY since, bundle_id)
ORDER BY since, bundle_id, product_id, currency;
