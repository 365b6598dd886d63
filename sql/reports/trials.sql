-- Trials that began, converted or were lost, by the date of each event
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, bucket.
-- started counts on the day a trial began, converted on the day the first paid period began, lost on the day the trial
-- was finally over. conversion_pct = converted / (converted + lost) of the trials decided in that bucket (day, week,
-- month, quarter or year), whenever they began; for the outcome of a group of trials, see trial_cohorts. A trial is a
-- run of free trial periods, not family-shared. The feed gives its outcome: it converts by trial.converted, or when a
-- paid product replaces it at once (product.changed alone); it is lost by trial.expired, billing.grace_expired or
-- refund.granted. A customer who comes back after that, or 65 days late, is subscription.reactivated and no conversion.
-- Of trials that had ended when the subscription was first seen, such as before an import, the periods give the outcome:
-- converted, if the next one came within an hour of the end (sandbox: ten minutes), or within 65 days of an end at which
-- Apple tried to charge; else lost at the end. refunded are those of the converted whose first charge Apple refunded so far, whenever that
-- was; they stay converted. product_id is the trial's. is_complete: the whole bucket lies between `from` and `until`
-- and was over at as_known_at. A cut bucket counts only the events in between.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?bucket} \else \set bucket month \endif
WITH happened AS (
    SELECT date_trunc(:'bucket', at AT TIME ZONE :'time_zone')::date AS since, bundle_id, product_id, kind, refunded_at
    FROM perennial.trials_as_known(:'as_known_at'::timestamptz) t
    CROSS JOIN LATERAL (
        VALUES ('started', started_at), (CASE WHEN outcome IN ('converted', 'lost') THEN outcome END, decided_at)
    ) AS event (kind, at)
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id')) AND kind IS NOT NULL
      AND at >= perennial.instant(:'from', :'time_zone') AND at < perennial.instant(:'until', :'time_zone')
)
SELECT since, bundle_id, product_id,
       count(*) FILTER (WHERE kind = 'started') AS started,
       count(*) FILTER (WHERE kind = 'converted') AS converted,
       count(*) FILTER (WHERE kind = 'converted' AND refunded_at IS NOT NULL) AS refunded,
       count(*) FILTER (WHERE kind = 'lost') AS lost,
       round(100.0 * count(*) FILTER (WHERE kind = 'converted')
           / NULLIF(count(*) FILTER (WHERE kind <> 'started'), 0), 1) AS conversion_pct,
       perennial.is_complete(
           since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM happened
GROUP BY since, bundle_id, product_id
ORDER BY since, bundle_id, product_id;
