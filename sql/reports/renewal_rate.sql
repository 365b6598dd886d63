-- Share of ended paid periods that were renewed
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, bucket.
-- due: paid periods that ended in the bucket and were neither refunded before their end nor replaced at once by another
-- product. The event of the next period gives the outcome; churn uses the same rule. renewed: subscription.renewed.
-- recovered: subscription.recovered, after a failed charge (grace or billing retry) or a late one, within 65 days.
-- not_renewed: any other decided outcome, also if the customer came back after a lapse (subscription.reactivated).
-- undecided: Apple still retries or has not been asked. renewal_pct = (renewed + recovered) / (due - undecided). If
-- both periods existed when the subscription was first seen, there is no event, and it is unknown whether renewal was
-- on. Then the next period counts as renewed if it began at most an hour (sandbox: ten minutes) after the end, as
-- recovered only if Apple reported that it was retrying, else as a return. is_mature: the bucket is over and no period
-- of it is undecided. is_complete: the whole bucket lies between `from` and `until` and was over at as_known_at. A cut
-- bucket counts only the periods that ended in between. A free trial is no renewal: see trials. A month of a term
-- that cannot be read, without a number or by a plan that is not known, is not due. product_id is that of the ended
-- period.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?bucket} \else \set bucket month \endif
WITH due AS (
    SELECT date_trunc(:'bucket', p.expires_at AT TIME ZONE :'time_zone') AS since, p.bundle_id, p.product_id,
           CASE WHEN p.next_is_paid AND p.next_purchased_at <= clock.at
                    THEN CASE WHEN p.was_awaited THEN 'recovered' ELSE 'renewed' END
                WHEN p.next_purchased_at <= clock.at THEN 'not_renewed'
                WHEN reported.state IN ('expired', 'revoked') AND COALESCE(reported.access_until <= clock.at, true)
                     THEN 'not_renewed'
                ELSE 'undecided' END AS outcome
    FROM perennial.renewals_as_known(:'as_known_at'::timestamptz) p
    CROSS JOIN LATERAL (SELECT LEAST(:'as_known_at'::timestamptz, now()) AS at) clock
    LEFT JOIN perennial.timeline reported
        ON reported.subscription_id = p.stream_id
        AND reported.valid_from <= clock.at AND clock.at < reported.valid_until
        AND reported.known_from <= :'as_known_at'::timestamptz
        AND COALESCE(reported.known_until > :'as_known_at'::timestamptz, true)
    WHERE p.environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR p.bundle_id = perennial.known_app(:'bundle_id'))
      AND p.expires_at <= clock.at
      AND p.expires_at >= perennial.instant(:'from', :'time_zone')
      AND p.expires_at < perennial.instant(:'until', :'time_zone')
)
SELECT since::date AS since, bundle_id, product_id, count(*) AS due,
       count(*) FILTER (WHERE outcome = 'renewed') AS renewed,
       count(*) FILTER (WHERE outcome = 'recovered') AS recovered,
       count(*) FILTER (WHERE outcome = 'not_renewed') AS not_renewed,
       count(*) FILTER (WHERE outcome = 'undecided') AS undecided,
       round(100.0 * count(*) FILTER (WHERE outcome IN ('renewed', 'recovered'))
           / NULLIF(count(*) FILTER (WHERE outcome <> 'undecided'), 0), 1) AS renewal_pct,
       bool_and(outcome <> 'undecided')
           AND since + perennial.bucket_length(:'bucket')
               <= LEAST(:'as_known_at'::timestamptz, now()) AT TIME ZONE :'time_zone' AS is_mature,
       perennial.is_complete(
           due.since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM due
GROUP BY due.since, bundle_id, product_id
ORDER BY since, bundle_id, product_id;
