-- How many of those who began to pay in a bucket still pay months later
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, bucket, months.
-- A subscription belongs to the cohort in which it paid for the first time. It is retained after n months if it pays
-- one day after the n-th monthly anniversary (the day lets renewals come late, and the hour of daylight saving pass);
-- see mrr for who pays. Who lapsed and came back is retained again. subscriptions is the whole cohort, reached those
-- whose anniversary has come, retained_pct = retained / reached. is_mature: the cohort is complete and all of it has
-- reached the month; a younger row can still change. months (12) is how far to look.
\if :{?from}
\else
\set from -infinity
\endif
\if :{?until}
\else
\set until infinity
\endif
\if :{?as_known_at}
\else
\set as_known_at infinity
\endif
\if :{?bundle_id}
\else
\set bundle_id ''
\endif
\if :{?environment}
\else
\set environment Production
\endif
\if :{?time_zone}
\else
\set time_zone UTC
\endif
\if :{?bucket}
\else
\set bucket month
\endif
\if :{?months}
\else
\set months 12
\endif
WITH clock AS (
    SELECT LEAST(:'as_known_at'::timestamptz, now()) AS at
), paying AS MATERIALIZED (
    SELECT bundle_id, stream_id, paying_from, paying_until
    FROM perennial.paying_as_known(:'as_known_at'::timestamptz)
    WHERE environment = :'environment' AND (:'bundle_id' = '' OR bundle_id = :'bundle_id')
      AND paying_from <= LEAST(:'as_known_at'::timestamptz, now())
), began AS (
    SELECT bundle_id, stream_id, min(paying_from) AS at FROM paying GROUP BY bundle_id, stream_id
), member AS (
    SELECT date_trunc(:'bucket', began.at AT TIME ZONE :'time_zone') AS since, began.bundle_id, began.stream_id, month,
           ((began.at AT TIME ZONE 'UTC') + month * interval '1 month' + interval '1 day') AT TIME ZONE 'UTC' AS at
    FROM began CROSS JOIN generate_series(1, :'months'::int) month
    WHERE (began.at AT TIME ZONE :'time_zone')::date >= :'from'::date
      AND (began.at AT TIME ZONE :'time_zone')::date < :'until'::date
), kept AS (
    SELECT m.since, m.bundle_id, m.month, m.at <= clock.at AS is_reached,
           m.at <= clock.at AND bool_or(p.paying_from <= m.at AND m.at < p.paying_until) AS is_retained
    FROM member m CROSS JOIN clock
    JOIN paying p USING (stream_id)
    GROUP BY m.since, m.bundle_id, m.stream_id, m.month, m.at, clock.at
)
SELECT since::date AS since, bundle_id, month, count(*) AS subscriptions,
       count(*) FILTER (WHERE is_reached) AS reached,
       count(*) FILTER (WHERE is_retained) AS retained,
       round(100.0 * count(*) FILTER (WHERE is_retained) / count(*) FILTER (WHERE is_reached), 1) AS retained_pct,
       bool_and(is_reached)
           AND since + ('1 ' || :'bucket')::interval <= (SELECT at FROM clock) AT TIME ZONE :'time_zone' AS is_mature
FROM kept
GROUP BY kept.since, bundle_id, month
HAVING count(*) FILTER (WHERE is_reached) > 0
ORDER BY since, bundle_id, month;
