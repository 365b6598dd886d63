-- Outcome of failed subscription charges
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, bucket.
-- A failure begins with billing.grace_entered or billing.retry_entered and belongs to the bucket of that moment. A
-- failure under way when the subscription was first seen, such as at an import, belongs to the bucket in which its
-- period ended. A failure ends as recovered with the next paid period (or change of product), or as lost when the
-- subscription or trial is over, revocation included. Until then it is undecided. It goes on where its period moves to. in_grace: recovered within grace,
-- with no access lost; in_retry: recovered after it, or without any. recovery_pct = recovered / (failures - undecided).
-- days_to_recovery is the mean time until we saw the recovery. Failures that were over before the subscription was
-- first seen are omitted. is_mature: the bucket is over and no failure of it is undecided. is_complete: the whole
-- bucket lies between `from` and `until` and was over at as_known_at. A cut bucket counts only the failures that began
-- in between.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?bucket} \else \set bucket month \endif
-- Materialized, because otherwise the planner begins with the first sight of every subscription.
WITH failing AS MATERIALIZED (
    SELECT * FROM perennial.timeline
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
      AND state IN ('grace_period', 'billing_retry') AND known_from <= :'as_known_at'::timestamptz
), running AS (
    -- The failures under way at first sight, as the timeline showed them then.
    SELECT t.bundle_id, t.original_transaction_id, min(t.product_id) AS product_id, min(t.valid_from) AS began_at,
           first.recorded_at, first.version, bool_or(t.state = 'grace_period') AS had_grace,
           max(t.valid_from) FILTER (WHERE t.state = 'billing_retry') AS retried_from
    FROM failing t
    JOIN perennial.subscription_event first
        ON first.stream_id = t.subscription_id AND first.kind IN ('subscription.started', 'trial.started')
        AND t.valid_from <= first.as_of
        AND t.known_from <= first.recorded_at AND COALESCE(t.known_until > first.recorded_at, true)
    WHERE first.recorded_at <= :'as_known_at'::timestamptz
      -- Not those after which the subscription had been paid again.
      AND NOT EXISTS (
          SELECT FROM perennial.timeline paid
          WHERE paid.subscription_id = t.subscription_id AND paid.state = 'active' AND paid.valid_from >= t.valid_until
            AND paid.valid_from <= first.as_of AND paid.known_from <= first.recorded_at
            AND COALESCE(paid.known_until > first.recorded_at, true))
    GROUP BY t.bundle_id, t.original_transaction_id, first.recorded_at, first.version, first.as_of
    HAVING bool_or(first.as_of < t.valid_until)
), moved AS (
    SELECT DISTINCT ON (m.former_stream_id) was.bundle_id, was.original_transaction_id, now_at.original_transaction_id AS moved_to
    FROM perennial.moved_period m
    JOIN perennial.subscription_key was ON was.stream_id = m.former_stream_id
    JOIN perennial.subscription_key now_at ON now_at.stream_id = m.stream_id
    WHERE was.environment = perennial.known_environment(:'environment')
      AND m.known_from <= :'as_known_at'::timestamptz AND COALESCE(m.known_until > :'as_known_at'::timestamptz, true)
    ORDER BY m.former_stream_id, m.known_from DESC, m.charge_id DESC
), reported AS (
    SELECT bundle_id, original_transaction_id, product_id, occurred_at, recorded_at, version, ordinal, kind, detail
    FROM perennial.event_log
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
      AND recorded_at <= :'as_known_at'::timestamptz
      AND kind IN ('billing.grace_entered', 'billing.retry_entered', 'billing.grace_expired', 'subscription.recovered',
                   'subscription.renewed', 'subscription.reactivated', 'trial.converted', 'product.changed',
                   'subscription.expired', 'trial.expired', 'refund.granted', 'family.revoked')
      AND NOT detail ? 'moved_to'
    UNION ALL
    SELECT bundle_id, original_transaction_id, product_id, began_at, recorded_at, version, 0,
           CASE WHEN had_grace THEN 'billing.grace_entered' ELSE 'billing.retry_entered' END, '{}'
    FROM running
    UNION ALL
    SELECT bundle_id, original_transaction_id, product_id, retried_from, recorded_at, version, 1, 'billing.grace_expired', '{}'
    FROM running WHERE had_grace AND retried_from IS NOT NULL
), event AS (
    SELECT bundle_id, COALESCE(moved_to, original_transaction_id) AS original_transaction_id, product_id, occurred_at,
           recorded_at, version, ordinal, kind,
           kind IN ('billing.grace_entered', 'billing.retry_entered') AS fails,
           kind IN ('subscription.recovered', 'subscription.renewed', 'subscription.reactivated', 'trial.converted',
                    'product.changed') AS recovers,
           kind IN ('subscription.expired', 'trial.expired', 'refund.granted', 'family.revoked')
               OR (kind = 'billing.grace_expired' AND detail ? 'reason') AS loses
    FROM reported LEFT JOIN moved USING (bundle_id, original_transaction_id)
), numbered AS (
    SELECT b.*, count(*) FILTER (WHERE b.begins) OVER (
               PARTITION BY b.bundle_id, b.original_transaction_id ORDER BY b.place) AS failure
    FROM (
        -- Grace after a retry, or its end, continues the same failure.
        SELECT e.*, row_number() OVER stream AS place,
               e.fails AND COALESCE(lag(e.recovers OR e.loses) OVER stream, true) AS begins
        FROM event e
        WINDOW stream AS (
            PARTITION BY e.bundle_id, e.original_transaction_id ORDER BY e.recorded_at, e.version, e.ordinal)) b
), failure AS (
    SELECT bundle_id, min(product_id) FILTER (WHERE begins) AS product_id, min(occurred_at) FILTER (WHERE begins) AS began_at,
           bool_or(kind = 'billing.grace_entered') AS had_grace,
           (array_agg(recovers ORDER BY place) FILTER (WHERE recovers OR loses))[1] AS is_recovered,
           (array_agg(recorded_at ORDER BY place) FILTER (WHERE recovers OR loses))[1] AS ended_at,
           COALESCE(min(place) FILTER (WHERE kind = 'billing.grace_expired')
               < min(place) FILTER (WHERE recovers OR loses), false) AS grace_ran_out
    FROM numbered WHERE failure > 0
    GROUP BY bundle_id, original_transaction_id, failure
), begun AS (
    SELECT *, date_trunc(:'bucket', began_at AT TIME ZONE :'time_zone') AS since FROM failure
    WHERE began_at >= perennial.instant(:'from', :'time_zone') AND began_at < perennial.instant(:'until', :'time_zone')
)
SELECT since::date AS since, bundle_id, product_id, count(*) AS failures,
       count(*) FILTER (WHERE had_grace) AS with_grace,
       count(*) FILTER (WHERE is_recovered AND had_grace AND NOT grace_ran_out) AS in_grace,
       count(*) FILTER (WHERE is_recovered AND NOT (had_grace AND NOT grace_ran_out)) AS in_retry,
       count(*) FILTER (WHERE NOT is_recovered) AS lost,
       count(*) FILTER (WHERE is_recovered IS NULL) AS undecided,
       round(100.0 * count(*) FILTER (WHERE is_recovered) / NULLIF(count(is_recovered), 0), 1) AS recovery_pct,
       round(avg(extract(epoch FROM ended_at - began_at) / 86400) FILTER (WHERE is_recovered), 1) AS days_to_recovery,
       bool_and(is_recovered IS NOT NULL)
           AND since + perennial.bucket_length(:'bucket')
               <= LEAST(:'as_known_at'::timestamptz, now()) AT TIME ZONE :'time_zone' AS is_mature,
       perennial.is_complete(
           begun.since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM begun
GROUP BY begun.since, bundle_id, product_id
ORDER BY since, bundle_id, product_id;
