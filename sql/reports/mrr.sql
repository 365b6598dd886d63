-- Monthly recurring revenue at each day's end, as known at any time
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, by.
-- A subscription pays at a day's end if it gives access and the newest period that has begun was a charge: no trial,
-- not family-shared, not refunded before. It counts with the price of that period divided by its months (the catalog's
-- period, or for offers the actual length; a month has 365.25 / 12 days), also during grace and while it awaits
-- renewal; a term whose failed payment Apple tries counts with 0, and a group with what its transactions of the period cost
-- without the seats that were refunded until then. Amounts are in units of the currency, one row for
-- each, never added up. A row without currency counts subscriptions at unknown prices. The shares give the sources of
-- the prices of all paying subscriptions of the app that day: Apple's, stated at intake, the catalog's for the
-- storefront, the default storefront's, unknown. The day that was not over at as_known_at appears as of that instant,
-- with is_complete false. by=product gives a row for each product_id, which add up to those of by=total.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?by} \else \set by total \endif
WITH edge AS (
    SELECT day, bundle_id, perennial.product_by(:'by', product_id) AS product_id, currency, price_basis,
           sum(change) AS subscriptions, sum(change * monthly_milliunits) AS monthly
    FROM perennial.paying_as_known(:'as_known_at'::timestamptz)
    CROSS JOIN (SELECT LEAST(:'as_known_at'::timestamptz, now()) AS at) clock
    CROSS JOIN LATERAL (
        SELECT perennial.counted_day(paying_from, :'time_zone', clock.at) AS first_day,
               perennial.counted_day(paying_until, :'time_zone', clock.at) AS end_day) stretch
    CROSS JOIN LATERAL (VALUES (first_day, 1), (end_day, -1)) AS edge (day, change)
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id')) AND first_day < end_day
    GROUP BY day, bundle_id, 3, currency, price_basis
), moved AS (
    SELECT day, bundle_id, product_id, currency, sum(subscriptions) AS subscriptions, sum(monthly) AS monthly,
           COALESCE(sum(subscriptions) FILTER (WHERE price_basis = 'apple'), 0) AS apple,
           COALESCE(sum(subscriptions) FILTER (WHERE price_basis = 'stated'), 0) AS stated,
           COALESCE(sum(subscriptions) FILTER (WHERE price_basis = 'storefront'), 0) AS storefront,
           COALESCE(sum(subscriptions) FILTER (WHERE price_basis = 'default'), 0) AS "default",
           COALESCE(sum(subscriptions) FILTER (WHERE price_basis = 'unknown'), 0) AS unknown
    FROM edge GROUP BY day, bundle_id, product_id, currency
), days AS (
    SELECT bundle_id, product_id, currency, day::date AS day
    FROM (
        SELECT bundle_id, product_id, currency, min(day) AS first_day FROM moved
        GROUP BY bundle_id, product_id, currency) first
    CROSS JOIN LATERAL generate_series(
        first.first_day, perennial.last_day(:'until', :'time_zone', :'as_known_at'::timestamptz), interval '1 day') day
), reported AS (
    SELECT d.day, d.bundle_id, d.product_id, d.currency, sum(m.subscriptions) OVER sofar AS subscriptions,
           sum(m.monthly) OVER sofar AS monthly, sum(m.apple) OVER sofar AS apple, sum(m.stated) OVER sofar AS stated,
           sum(m.storefront) OVER sofar AS storefront,
           sum(m."default") OVER sofar AS "default", sum(m.unknown) OVER sofar AS unknown
    FROM days d
    LEFT JOIN moved m
        ON m.day = d.day AND m.bundle_id = d.bundle_id AND m.product_id = d.product_id
        AND COALESCE(m.currency, '') = COALESCE(d.currency, '')
    WINDOW sofar AS (PARTITION BY d.bundle_id, d.product_id, d.currency ORDER BY d.day)
)
SELECT day, bundle_id, NULLIF(product_id, '') AS product_id, currency, subscriptions,
       round(monthly / 1000, 3) AS mrr,
       round(100.0 * sum(apple) OVER app / NULLIF(sum(subscriptions) OVER app, 0), 1) AS apple_pct,
       round(100.0 * sum(stated) OVER app / NULLIF(sum(subscriptions) OVER app, 0), 1) AS stated_pct,
       round(100.0 * sum(storefront) OVER app / NULLIF(sum(subscriptions) OVER app, 0), 1) AS storefront_pct,
       round(100.0 * sum("default") OVER app / NULLIF(sum(subscriptions) OVER app, 0), 1) AS default_pct,
       round(100.0 * sum(unknown) OVER app / NULLIF(sum(subscriptions) OVER app, 0), 1) AS unknown_pct,
       perennial.is_complete(
           day, 'day', :'time_zone', '-infinity', 'infinity', :'as_known_at'::timestamptz) AS is_complete
FROM reported
WHERE day >= perennial.day_of(:'from', :'time_zone') AND subscriptions > 0
WINDOW app AS (PARTITION BY day, bundle_id)
ORDER BY day, bundle_id, product_id, currency;
