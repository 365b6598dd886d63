-- Subscriptions with access by day and product, as known at any time
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone.
-- A subscription is counted on a day if it gives access at the day's end (in time_zone): active, in grace, awaiting
-- renewal, or in the outage allowance because Apple was not asked since. paid + trial + family_shared + assigned
-- (seats of groups, ownerships that are not known, and what a payer keeps whose period moved to another customer's
-- subscription, where it is paid) = subscriptions;
-- grace_period and awaiting_renewal (which includes the outage allowance) are among them. The day that was not over at
-- as_known_at appears as of that instant, with is_complete false. as_known_at returns the report as of that instant;
-- the default is present knowledge. The sandbox appears only with environment=Sandbox.
--     psql -v from=2026-01-01 -v until=2026-02-01 -v as_known_at=2026-01-20 -f sql/reports/active_subscriptions.sql
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
WITH edge AS (
    SELECT day, bundle_id, product_id,
           CASE WHEN state = 'awaiting_renewal' AND reason = 'replacement' AND NOT EXISTS (
               SELECT FROM perennial.period_version p
               WHERE p.stream_id = subscription_id AND p.purchased_at <= valid_from AND p.expires_at > valid_from
                 AND p.known_from <= :'as_known_at'::timestamptz
                 AND COALESCE(p.known_until > :'as_known_at'::timestamptz, true)) THEN '{assigned}' ELSE flags END AS flags,
           state, entitled, sum(change) AS subscriptions
    FROM perennial.timeline
    CROSS JOIN (SELECT LEAST(:'as_known_at'::timestamptz, now()) AS at) clock
    CROSS JOIN LATERAL (
        SELECT perennial.counted_day(valid_from, :'time_zone', clock.at) AS first_day,
               perennial.counted_day(access_until, :'time_zone', clock.at) AS end_day) stretch
    CROSS JOIN LATERAL (VALUES (first_day, 1), (end_day, -1)) AS edge (day, change)
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id')) AND access_until IS NOT NULL
      AND known_from <= :'as_known_at'::timestamptz AND COALESCE(known_until > :'as_known_at'::timestamptz, true)
      AND first_day < end_day
    GROUP BY day, bundle_id, product_id, 4, state, entitled
), moved AS (
    SELECT day, bundle_id, product_id, sum(subscriptions) AS subscriptions,
           sum(subscriptions) FILTER (WHERE NOT flags && '{trial,family_shared,assigned}') AS paid,
           sum(subscriptions) FILTER (WHERE 'trial' = ANY (flags) AND NOT flags && '{family_shared,assigned}') AS trial,
           sum(subscriptions) FILTER (WHERE 'family_shared' = ANY (flags)) AS family_shared,
           sum(subscriptions) FILTER (WHERE 'assigned' = ANY (flags)) AS assigned,
           sum(subscriptions) FILTER (WHERE state = 'grace_period') AS grace_period,
           sum(subscriptions) FILTER (WHERE state = 'awaiting_renewal' OR NOT entitled) AS awaiting_renewal
    FROM edge GROUP BY day, bundle_id, product_id
), days AS (
    SELECT product.bundle_id, product.product_id, day::date AS day
    FROM (SELECT bundle_id, product_id, min(day) AS first_day FROM moved GROUP BY bundle_id, product_id) product
    CROSS JOIN LATERAL generate_series(
        product.first_day, perennial.last_day(:'until', :'time_zone', :'as_known_at'::timestamptz),
        interval '1 day') day
)
SELECT * FROM (
    SELECT day, bundle_id, product_id, sum(subscriptions) OVER sofar AS subscriptions,
           COALESCE(sum(paid) OVER sofar, 0) AS paid, COALESCE(sum(trial) OVER sofar, 0) AS trial,
           COALESCE(sum(family_shared) OVER sofar, 0) AS family_shared,
           COALESCE(sum(assigned) OVER sofar, 0) AS assigned,
           COALESCE(sum(grace_period) OVER sofar, 0) AS grace_period,
           COALESCE(sum(awaiting_renewal) OVER sofar, 0) AS awaiting_renewal,
           perennial.is_complete(
               day, 'day', :'time_zone', '-infinity', 'infinity', :'as_known_at'::timestamptz) AS is_complete
    FROM days LEFT JOIN moved USING (day, bundle_id, product_id)
    WINDOW sofar AS (PARTITION BY bundle_id, product_id ORDER BY day)) reported
WHERE day >= perennial.day_of(:'from', :'time_zone') AND subscriptions > 0
ORDER BY day, bundle_id, product_id;
