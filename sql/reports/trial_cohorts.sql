-- Outcome of the trials that began in a bucket
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, bucket.
-- started = converted + lost + undecided. refunded are those of the converted whose first charge Apple refunded so far;
-- they stay converted, because Apple charged for them, and converted - refunded kept paying for their first period. An
-- undecided trial still runs, awaits its renewal or is in billing retry. conversion_pct = converted / started, which
-- can only rise while is_mature is false: a cohort is mature when its bucket is over and every trial of it is decided.
-- For the definitions of trial and conversion see trials. is_complete: the whole bucket lies between `from` and `until`
-- and was over at as_known_at. A cut bucket counts only the trials that began in between.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?bucket} \else \set bucket month \endif
WITH trial AS MATERIALIZED (
    SELECT started_at, date_trunc(:'bucket', started_at AT TIME ZONE :'time_zone') AS since, bundle_id, product_id, outcome, refunded_at
    FROM perennial.trials_as_known(:'as_known_at'::timestamptz)
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
)
SELECT since::date AS since, bundle_id, product_id, count(*) AS started,
       count(*) FILTER (WHERE outcome = 'converted') AS converted,
       count(*) FILTER (WHERE refunded_at IS NOT NULL) AS refunded,
       count(*) FILTER (WHERE outcome = 'lost') AS lost,
       count(*) FILTER (WHERE outcome IN ('running', 'pending')) AS undecided,
       round(100.0 * count(*) FILTER (WHERE outcome = 'converted') / count(*), 1) AS conversion_pct,
       bool_and(outcome IN ('converted', 'lost'))
           AND since + perennial.bucket_length(:'bucket')
               <= LEAST(:'as_known_at'::timestamptz, now()) AT TIME ZONE :'time_zone' AS is_mature,
       perennial.is_complete(
           trial.since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM trial
WHERE started_at >= perennial.instant(:'from', :'time_zone') AND started_at < perennial.instant(:'until', :'time_zone')
GROUP BY trial.since, bundle_id, product_id
ORDER BY since, bundle_id, product_id;
